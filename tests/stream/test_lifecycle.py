"""Forgetting and jobs over the whole map."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.vectors import Point
from streams.flow.steps import maintain as maintaining
from tests.worlds.in_memory_pipeline import InMemoryMap, Json, commanded, turn

JOBS = ["backfill", "rebuild", "reconcile", "retry_failed"]
NAMES = ("processed", "skipped", "failed", "stale_cleared")


@pytest.fixture(autouse=True)
def _hurry_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintaining, "JOB_POLL_INTERVAL_S", 0.001)


async def told(the_map: InMemoryMap, *texts: str, **fields: Any) -> None:
    """Turns whose ids are their texts, each with its vector."""
    for text in texts:
        await the_map.remember(text, text, **fields)
    await the_map.topics.settled()
    the_map.clock.forward(60)


async def job(the_map: InMemoryMap, command: str, **arguments: Any) -> Json:
    """What a job is answered with, and nothing is left to be done afterwards."""
    reply = await the_map.command(command, **arguments)
    assert reply["status"] == "ok", reply
    await the_map.topics.settled()
    return dict(reply["result"])


def counted(result: Json) -> dict[str, int]:
    return {name: result[name] for name in NAMES if result[name]}


async def points(the_map: InMemoryMap, mode: str = "general", embedder: str = "general") -> int:
    space = the_map.space(mode, embedder)
    return sum([await the_map.index.count(space, partition) for partition in range(4)])


async def test_one_memory_is_forgotten_once_and_nobody_is_told_of_that_of_another_scope(the_map: InMemoryMap) -> None:
    await told(the_map, "violin")
    [memory] = the_map.memories.all()
    for project, forgotten in (("p2", 0), ("default", 1), ("default", 0), ("p2", 0)):
        reply = await the_map.command("forget", project=project, memory_id=memory.memory_id)
        assert reply["result"] == {"forgotten": forgotten}


async def test_what_is_forgotten_is_not_found_and_does_not_come_back(the_map: InMemoryMap) -> None:
    await told(the_map, "violin", "cello")
    await told(the_map, "drum", conversation_id="c2")
    assert (await the_map.command("forget", conversation_id="c1"))["result"] == {"forgotten": 2}
    assert await the_map.texts("violin cello drum") == ["drum"]
    assert await points(the_map) == 1
    for selector in ({"conversation_id": "c1"}, {"conversation_id": "c1", "turn_id": "cello"}):
        assert (await the_map.command("forget", **selector))["result"] == {"forgotten": 0}
    for text in ("violin", "an edited violin"):
        again = await the_map.ask(the_map.names.turns, turn(text, "violin"))
        assert (again["status"], [one["code"] for one in again["warnings"]]) == ("ok", ["forgotten"])
    await told(the_map, "a new one")
    assert sorted(await the_map.texts("violin cello drum new")) == ["a new one", "drum"]
    assert (await the_map.command("health"))["result"]["modes"]["general"]["eligible"] == 2


async def test_a_user_is_forgotten_in_all_projects_and_nobody_else_is(the_map: InMemoryMap) -> None:
    await told(the_map, "violin")
    await told(the_map, "cello", scope={"user_id": "u1", "project_id": "p2"})
    await told(the_map, "drum", user="u2")
    forget = commanded("forget", "u1", "p3") | {"arguments": {"user": True}}
    assert (await the_map.ask(the_map.names.commands, forget))["result"] == {"forgotten": 2}
    assert [memory.text for memory in the_map.memories.all()] == ["drum"]


@pytest.mark.parametrize("command", JOBS)
async def test_where_all_is_as_it_should_be_a_job_changes_nothing(the_map: InMemoryMap, command: str) -> None:
    await told(the_map, "violin", "cello")
    before = {memory.memory_id: memory.text for memory in the_map.memories.all()}
    result = await job(the_map, command)
    assert counted(result) == {"processed" if command == "rebuild" else "skipped": 2}
    assert {memory.memory_id: memory.text for memory in the_map.memories.all()} == before
    assert await points(the_map) == 2
    assert (await the_map.retrieve("violin"))["result"]["strategy"] == "hybrid"


async def test_a_rebuild_makes_every_vector_again_and_finds_by_the_old_ones_until_then(the_map: InMemoryMap) -> None:
    await told(the_map, *(f"turn {number}" for number in range(250)))
    the_map.index.down()
    rebuilding = asyncio.create_task(job(the_map, "rebuild", mode="general"))
    await the_map.until(lambda: bool(the_map.jobs.under_way("u1")))
    assert {memory.embedding.status for memory in the_map.memories.all()} == {"ready"}
    [shown] = (await the_map.command("health"))["result"]["jobs"]
    assert (shown["command"], shown["mode"], shown["total"]) == ("rebuild", "general", 250)
    the_map.index.up()
    result = await rebuilding
    assert counted(result) == {"processed": 250}
    assert {memory.embedding.embedded_at for memory in the_map.memories.all()} == {the_map.clock.now()}
    assert result["job_id"].startswith("rebuild-")


async def test_a_job_of_one_mode_or_user_leaves_the_others_alone(the_map: InMemoryMap) -> None:
    await the_map.command("declare_mode", name="code", embedder="tiny32")
    await told(the_map, "violin")
    await told(the_map, "cello", mode="code")
    await told(the_map, "drum", user="u2")
    assert counted(await job(the_map, "rebuild", mode="code")) == {"processed": 1}
    again = [one.text for one in the_map.memories.all() if one.embedding.embedded_at == the_map.clock.now()]
    assert again == ["cello"]
    assert (await the_map.command("rebuild", mode="nowhere"))["error"]["code"] == "unknown_mode"


async def test_the_last_backfill_is_told_by_mode(the_map: InMemoryMap) -> None:
    await the_map.command("declare_mode", name="code", embedder="tiny32")
    await told(the_map, "violin")
    await job(the_map, "backfill", mode="code")
    modes = (await the_map.command("health"))["result"]["modes"]
    assert {name: one["last_backfill"] for name, one in modes.items()} == {
        "general": None,
        "code": "2026-03-01T09:31:00Z",
    }


async def test_a_backfill_fails_what_misses_its_model_and_makes_it_once_that_is_there(the_map: InMemoryMap) -> None:
    await the_map.command("declare_mode", name="code", embedder="tiny32")
    the_map.embedders.missing("tiny32")
    await told(the_map, "violin", mode="code")
    assert counted(await job(the_map, "backfill")) == {"failed": 1}
    the_map.embedders.on_loaded = lambda _: None
    the_map.embedders.load("tiny32")
    assert counted(await job(the_map, "backfill")) == {"processed": 1}
    assert the_map.memory("violin").embedding.status == "ready"


async def test_reconcile_makes_what_is_missing_and_removes_what_no_record_wants(the_map: InMemoryMap) -> None:
    await told(the_map, "violin", "cello")
    await told(the_map, "drum", user="u2")
    space, kept = the_map.space("general", "general"), the_map.memory("cello")
    await the_map.index.delete(space, [the_map.memory("violin").memory_id])
    [vector] = (await the_map.index.vectors(space, [kept.memory_id])).values()
    stray = the_map.space("lost", "tiny32")
    for where, dim, one in ((space, 384, "00000000-0000-0000-0000-000000000001"), (stray, 32, kept.memory_id)):
        point = Point(
            memory_id=one,
            vector=vector.pooled if dim == 384 else np.eye(1, dim, dtype=np.float32)[0],
            boundary="u1",
            partition=the_map.topics.records(the_map.names.turns)[0].partition,
            scope=kept.scope,
            mode=where.mode,
            type="episodic",
            occurred_ms=0,
            content_hash="other",
        )
        await the_map.index.upsert(where, [point])
    result = await job(the_map, "reconcile")
    assert (counted(result), result["orphans"]) == ({"processed": 1, "skipped": 1, "stale_cleared": 1}, 2)
    assert (await points(the_map), await points(the_map, "lost", "tiny32")) == (3, 0)
    assert counted(await job(the_map, "reconcile")) == {"skipped": 2}


async def test_a_job_that_was_cut_off_goes_on_with_what_is_left(tmp_path: Path) -> None:
    the_map = InMemoryMap(tmp_path)
    async with the_map.running():
        await told(the_map, *(f"turn {number}" for number in range(20)))
    the_map.topics.stop_after(30)
    async with the_map.running():
        await the_map.publish(the_map.names.commands, commanded("rebuild"))
        await the_map.until(lambda: the_map.topics.refused)
    made = sum(memory.embedding.embedded_at == the_map.clock.now() for memory in the_map.memories.all())
    assert made < 20
    the_map.topics.stop_after(None)
    async with the_map.running():
        await the_map.topics.settled()
    assert all(memory.embedding.embedded_at == the_map.clock.now() for memory in the_map.memories.all())
