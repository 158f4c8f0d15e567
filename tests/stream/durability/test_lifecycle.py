"""Forgetting and jobs through the whole pipeline."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.models.vectors import Point
from streams.flow.steps import maintain as maintaining
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json, command_message, turn_message

JOBS = ["backfill", "rebuild", "reconcile", "retry_failed"]
NAMES = ("processed", "skipped", "failed", "stale_cleared")


@pytest.fixture(autouse=True)
def _hurry_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintaining, "JOB_POLL_INTERVAL_S", 0.001)


async def remember_turns(pipeline: InMemoryPipeline, *texts: str, **fields: Any) -> None:
    """Remember turns with their texts as ids, and wait for the vectors."""
    for text in texts:
        await pipeline.remember(text, text, **fields)
    await pipeline.topics.settled()
    pipeline.clock.forward(60)


async def job(pipeline: InMemoryPipeline, command: str, **arguments: Any) -> Json:
    """Run a job, wait until all records are processed and return the reply."""
    reply = await pipeline.command(command, **arguments)
    assert reply["status"] == "ok", reply
    await pipeline.topics.settled()
    return dict(reply["result"])


def counted(result: Json) -> dict[str, int]:
    return {name: result[name] for name in NAMES if result[name]}


async def points(pipeline: InMemoryPipeline, mode: str = "general", embedder: str = "general") -> int:
    space = pipeline.space(mode, embedder)
    return sum([await pipeline.index.count(space, partition) for partition in range(4)])


async def test_memory_is_forgotten_once_and_only_in_its_scope(pipeline: InMemoryPipeline) -> None:
    await remember_turns(pipeline, "violin")
    [memory] = pipeline.memories.all()
    for project, forgotten in (("p2", 0), ("default", 1), ("default", 0), ("p2", 0)):
        reply = await pipeline.command("forget", project=project, memory_id=memory.memory_id)
        assert reply["result"]["forgotten"] == forgotten


async def test_forgotten_memories_are_not_found_and_do_not_return(pipeline: InMemoryPipeline) -> None:
    await remember_turns(pipeline, "violin", "cello")
    await remember_turns(pipeline, "drum", conversation_id="c2")
    assert (await pipeline.command("forget", conversation_id="c1"))["result"]["forgotten"] == 2
    assert await pipeline.texts("violin cello drum") == ["drum"]
    assert await points(pipeline) == 1
    for selector in ({"conversation_id": "c1"}, {"conversation_id": "c1", "turn_id": "cello"}):
        assert (await pipeline.command("forget", **selector))["result"]["forgotten"] == 0
    for text in ("violin", "an edited violin"):
        again = await pipeline.ask(pipeline.names.turns, turn_message(text, "violin"))
        assert again["status"] == "ok"
        assert [warning["code"] for warning in again["warnings"]] == ["forgotten"]
    await remember_turns(pipeline, "a new one")
    assert sorted(await pipeline.texts("violin cello drum new")) == ["a new one", "drum"]
    assert (await pipeline.command("health"))["result"]["modes"]["general"]["eligible"] == 2


async def test_forgetting_a_user_covers_all_projects_and_no_other_user(pipeline: InMemoryPipeline) -> None:
    await remember_turns(pipeline, "violin")
    await remember_turns(pipeline, "cello", scope={"user_id": "u1", "project_id": "p2"})
    await remember_turns(pipeline, "drum", user="u2")
    forget = command_message("forget", "u1", "p3") | {"arguments": {"user": True}}
    assert (await pipeline.ask(pipeline.names.commands, forget))["result"]["forgotten"] == 2
    assert [memory.text for memory in pipeline.memories.all()] == ["drum"]


@pytest.mark.parametrize("command", JOBS)
async def test_jobs_change_nothing_in_a_consistent_state(pipeline: InMemoryPipeline, command: str) -> None:
    await remember_turns(pipeline, "violin", "cello")
    before = {memory.memory_id: memory.text for memory in pipeline.memories.all()}
    result = await job(pipeline, command)
    assert counted(result) == {"processed" if command == "rebuild" else "skipped": 2}
    assert {memory.memory_id: memory.text for memory in pipeline.memories.all()} == before
    assert await points(pipeline) == 2
    assert (await pipeline.retrieve("violin"))["result"]["strategy"] == "hybrid"


async def test_rebuild_replaces_every_vector_and_serves_the_old_until_then(pipeline: InMemoryPipeline) -> None:
    await remember_turns(pipeline, *(f"turn {number}" for number in range(250)))
    pipeline.index.down()
    rebuilding = asyncio.create_task(job(pipeline, "rebuild", mode="general"))
    await pipeline.until(lambda: bool(pipeline.jobs.under_way("u1")))
    assert {memory.embedding.status for memory in pipeline.memories.all()} == {"ready"}
    [shown] = (await pipeline.command("health"))["result"]["jobs"]
    assert shown["command"] == "rebuild"
    assert shown["mode"] == "general"
    assert shown["total"] == 250
    pipeline.index.up()
    result = await rebuilding
    assert counted(result) == {"processed": 250}
    assert {memory.embedding.embedded_at for memory in pipeline.memories.all()} == {pipeline.clock.now()}
    assert result["job_id"].startswith("rebuild-")


async def test_job_is_limited_to_its_mode(pipeline: InMemoryPipeline) -> None:
    await pipeline.command("declare_mode", name="code", embedder="tiny32")
    await remember_turns(pipeline, "violin")
    await remember_turns(pipeline, "cello", mode="code")
    await remember_turns(pipeline, "drum", user="u2")
    assert counted(await job(pipeline, "rebuild", mode="code")) == {"processed": 1}
    again = [memory.text for memory in pipeline.memories.all() if memory.embedding.embedded_at == pipeline.clock.now()]
    assert again == ["cello"]
    assert (await pipeline.command("rebuild", mode="nowhere"))["error"]["code"] == "unknown_mode"


async def remember_in_projects(pipeline: InMemoryPipeline) -> None:
    """Remember a turn in `default`, in `p2`, and of another user."""
    await remember_turns(pipeline, "violin")
    await remember_turns(pipeline, "cello", scope={"user_id": "u1", "project_id": "p2"})
    await remember_turns(pipeline, "drum", user="u2")


@pytest.mark.parametrize("command", JOBS)
async def test_job_covers_its_project_or_on_demand_all_of_the_user(pipeline: InMemoryPipeline, command: str) -> None:
    await remember_in_projects(pipeline)
    for project in ("default", "p2"):
        assert (await job(pipeline, command, project=project))["total"] == 1
    assert (await job(pipeline, command, project="empty"))["total"] == 0
    assert (await job(pipeline, command, all_projects=True))["total"] == 2


async def test_rebuild_makes_only_the_vectors_of_its_project_again(pipeline: InMemoryPipeline) -> None:
    await remember_in_projects(pipeline)
    assert counted(await job(pipeline, "rebuild", project="p2")) == {"processed": 1}
    again = [memory.text for memory in pipeline.memories.all() if memory.embedding.embedded_at == pipeline.clock.now()]
    assert again == ["cello"]


async def test_job_in_a_mode_of_another_project_is_refused(pipeline: InMemoryPipeline) -> None:
    await pipeline.command("declare_mode", project="p2", name="code", embedder="tiny32", for_project=True)
    await remember_turns(pipeline, "cello", scope={"user_id": "u1", "project_id": "p2"}, mode="code")
    refused = await pipeline.command("rebuild", mode="code")
    assert refused["error"]["code"] == "unknown_mode"
    assert refused["error"]["field"] == "arguments.mode"
    for how in ({"project": "p2"}, {"all_projects": True}):
        assert counted(await job(pipeline, "rebuild", mode="code", **how)) == {"processed": 1}
    pipeline.clock.forward(60)
    await job(pipeline, "backfill", project="p3")
    modes = (await pipeline.command("health"))["result"]["modes"]
    assert modes["general"]["last_backfill"] > modes["code"]["last_backfill"]


async def test_reconcile_removes_orphans_of_its_project_only(pipeline: InMemoryPipeline) -> None:
    await remember_in_projects(pipeline)
    for text in ("violin", "cello"):
        memory = pipeline.memory(text)
        partition = pipeline.topics.records(pipeline.names.turns)[0].partition
        pipeline.memories.forget(partition, memory.memory_id)
    assert (await job(pipeline, "reconcile", project="p2"))["orphans"] == 1
    assert await points(pipeline) == 2
    assert (await job(pipeline, "reconcile", all_projects=True))["orphans"] == 1
    assert await points(pipeline) == 1


async def test_job_of_an_earlier_version_covers_all_projects(pipeline: InMemoryPipeline) -> None:
    await remember_in_projects(pipeline)
    known = {"job_id": "rebuild-1-1", "kind": "rebuild", "mode": None, "started_at": "2026-03-01T09:31:00Z"}
    scope = {"user_id": "u1", "project_id": "default"}
    reply = await pipeline.ask(pipeline.names.jobs, {"schema": "job.v1", "scope": scope, **known})
    assert reply["result"]["total"] == 2


async def test_last_backfill_is_reported_by_mode(pipeline: InMemoryPipeline) -> None:
    await pipeline.command("declare_mode", name="code", embedder="tiny32")
    await remember_turns(pipeline, "violin")
    await job(pipeline, "backfill", mode="code")
    modes = (await pipeline.command("health"))["result"]["modes"]
    assert {name: mode["last_backfill"] for name, mode in modes.items()} == {
        "general": None,
        "code": "2026-03-01T09:31:00Z",
    }


async def test_backfill_fails_memories_of_a_missing_model_until_it_is_loaded(pipeline: InMemoryPipeline) -> None:
    await pipeline.command("declare_mode", name="code", embedder="tiny32")
    pipeline.embedders.missing("tiny32")
    await remember_turns(pipeline, "violin", mode="code")
    assert counted(await job(pipeline, "backfill")) == {"failed": 1}
    pipeline.embedders.on_loaded = lambda _: None
    pipeline.embedders.load("tiny32")
    assert counted(await job(pipeline, "backfill")) == {"processed": 1}
    assert pipeline.memory("violin").embedding.status == "ready"


async def test_reconcile_adds_missing_and_removes_orphaned_vectors(pipeline: InMemoryPipeline) -> None:
    await remember_turns(pipeline, "violin", "cello")
    await remember_turns(pipeline, "drum", user="u2")
    space, stored = pipeline.space("general", "general"), pipeline.memory("cello")
    await pipeline.index.delete(space, [pipeline.memory("violin").memory_id])
    [vector] = (await pipeline.index.vectors(space, [stored.memory_id])).values()
    stray = pipeline.space("lost", "tiny32")
    for where, dim, each in ((space, 384, "00000000-0000-0000-0000-000000000001"), (stray, 32, stored.memory_id)):
        point = Point(
            memory_id=each,
            vector=vector.pooled if dim == 384 else np.eye(1, dim, dtype=np.float32)[0],
            boundary="u1",
            partition=pipeline.topics.records(pipeline.names.turns)[0].partition,
            scope=stored.scope,
            mode=where.mode,
            type="episodic",
            occurred_ms=0,
            content_hash="other",
        )
        await pipeline.index.upsert(where, [point])
    result = await job(pipeline, "reconcile")
    assert counted(result) == {"processed": 1, "skipped": 1, "stale_cleared": 1}
    assert result["orphans"] == 2
    assert await points(pipeline) == 3
    assert await points(pipeline, "lost", "tiny32") == 0
    assert counted(await job(pipeline, "reconcile")) == {"skipped": 2}


async def test_interrupted_job_resumes_with_the_rest(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    async with pipeline.running():
        await remember_turns(pipeline, *(f"turn {number}" for number in range(20)))
    pipeline.topics.stop_after(30)
    async with pipeline.running():
        await pipeline.publish(pipeline.names.commands, command_message("rebuild"))
        await pipeline.until(lambda: pipeline.topics.refused)
    rebuilt = sum(memory.embedding.embedded_at == pipeline.clock.now() for memory in pipeline.memories.all())
    assert rebuilt < 20
    pipeline.topics.stop_after(None)
    async with pipeline.running():
        await pipeline.topics.settled()
    assert all(memory.embedding.embedded_at == pipeline.clock.now() for memory in pipeline.memories.all())
