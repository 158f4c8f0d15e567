"""Scheduled maintenance: jobs of each user when they are due, and backups."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_core import from_json, to_json

from schemas.internal.job_history import Schedule, StoredJob
from streams.adapters.lexical.boundary_counts import SqliteBoundaryCounts
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.background import scheduling
from streams.flow.background.scheduling import MaintenanceScheduler, backed_up_at, backup_status
from streams.settings import Settings
from tests.worlds.in_memory_pipeline import InMemoryPipeline

HOURLY: Schedule = {"reconcile": 1.0}


def scheduler(pipeline: InMemoryPipeline, schedule: Schedule = HOURLY, folder: Path | None = None) -> Any:
    """Return the scheduler of a process that has just started."""
    _, ctx = pipeline.wire(SqliteLexicalIndex(pipeline.directory / "unused"))
    counts = SqliteBoundaryCounts(pipeline.directory / "partitions")
    return MaintenanceScheduler(schedule, folder, counts, ctx)


async def jobs(pipeline: InMemoryPipeline) -> list[str]:
    await pipeline.topics.settled()
    written = [from_json(record.value or b"") for record in pipeline.topics.records(pipeline.names.jobs)]
    return [f"{job['kind']} {job['scope']['user_id']}" for job in written]


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling, "POLL_INTERVAL_S", 0.001)


@pytest.fixture
async def used(pipeline: InMemoryPipeline) -> InMemoryPipeline:
    for user in ("u1", "u2"):
        await pipeline.remember("The kettle is blue.", user=user)
    await pipeline.topics.settled()
    await pipeline.tables.commits.commit(range(pipeline.partitions))
    return pipeline


async def test_each_user_is_maintained_when_it_is_due(used: InMemoryPipeline) -> None:
    await scheduler(used).look()
    assert sorted(await jobs(used)) == ["reconcile u1", "reconcile u2"]


async def test_nobody_is_maintained_more_often_than_is_set(used: InMemoryPipeline) -> None:
    await scheduler(used).look()
    await scheduler(used).look()
    assert len(await jobs(used)) == 2


async def test_users_are_maintained_again_after_the_interval(used: InMemoryPipeline) -> None:
    await scheduler(used).look()
    used.clock.forward(3601)
    await scheduler(used).look()
    assert len(await jobs(used)) == 4


async def test_tasks_have_intervals_of_their_own(used: InMemoryPipeline) -> None:
    schedule: Schedule = {"retry_failed": 1.0, "verify": 24.0}
    await scheduler(used, schedule).look()
    used.clock.forward(3601)
    await scheduler(used, schedule).look()
    assert sorted(await jobs(used)).count("retry_failed u1") == 2
    assert sorted(await jobs(used)).count("verify u1") == 1


async def test_job_that_a_killed_process_had_not_written_is_written(used: InMemoryPipeline) -> None:
    killed = scheduler(used)
    [due, *_] = [job for partition in range(used.partitions) for job in killed._due(partition, "u1")]
    partition = int(due.job_id.split("-")[1])
    stored = StoredJob(job_id=due.job_id, project=None, at_ms=round(due.started_at.timestamp() * 1000))
    used.jobs.begin_scheduled(partition, "u1", "reconcile", stored)
    await scheduler(used).look()
    assert sorted(await jobs(used)) == ["reconcile u1", "reconcile u2"]
    found = used.jobs.find(partition, "u1", due.job_id)
    assert found is not None
    assert found.body()["state"] == "done"


async def test_health_has_the_last_run_of_each_scheduled_task(tmp_path: Path) -> None:
    settings = {"maintain_every": {"reconcile": 1.0, "verify": 24.0}}
    pipeline = InMemoryPipeline(tmp_path / "data", more_settings=settings)
    async with pipeline.running():
        await pipeline.remember("The kettle is blue.")
        await pipeline.topics.settled()
        await pipeline.tables.commits.commit(range(pipeline.partitions))
        await scheduler(pipeline).look()
        shown = (await pipeline.command("health"))["result"]["maintenance"]
        assert shown["reconcile"]["every_hours"] == 1.0
        assert shown["reconcile"]["last"]["state"] == "done"
        assert shown["verify"] == {"every_hours": 24.0, "last": None}


async def test_scheduled_jobs_take_no_place_of_those_that_were_asked_for(used: InMemoryPipeline) -> None:
    await scheduler(used).look()
    assert (await used.command("health"))["result"]["last_jobs"] == []


async def test_scheduler_runs_until_cancelled(used: InMemoryPipeline) -> None:
    running = asyncio.create_task(scheduler(used, {"reconcile": 1e-6}).run())
    await used.topics.until(lambda: len(used.topics.records(used.names.jobs)) > 0)
    running.cancel()


async def test_backup_is_made_when_the_last_one_is_older(
    used: InMemoryPipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []

    async def back_up(folder: Path) -> None:
        made.append(folder)
        (folder / "manifest.json").write_bytes(to_json({"taken_at": used.clock.now()}))

    monkeypatch.setattr(scheduling, "back_up", back_up)
    for forward_s in (0, 1800, 1801):
        used.clock.forward(forward_s)
        await scheduler(used, {"backup": 1.0}, tmp_path).look()
    assert made == [tmp_path, tmp_path]


def test_folder_says_when_the_backup_was_made(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"taken_at": "2026-03-01T09:30:00+00:00"}')
    assert backed_up_at(tmp_path) == datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    status = {"backup": {"every_hours": 24.0, "last": "2026-03-01T09:30:00Z"}}
    assert backup_status({"backup": 24.0}, tmp_path) == status


def test_backup_that_was_never_complete_has_no_time(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"taken_at": ""}')
    assert backed_up_at(tmp_path) is None


def test_scheduled_backups_need_a_folder() -> None:
    with pytest.raises(ValidationError, match="MODESTREAM_BACKUP_TO"):
        Settings(maintain_every={"backup": 24})
