"""The topic `boundaries` tells of every boundary what it has."""

import asyncio
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from streams.adapters.lexical.boundary_counts import SqliteBoundaryCounts
from streams.flow.background import boundaries
from tests.worlds.consolidation import consolidate, remember_many
from tests.worlds.in_memory_boundaries import InMemoryBoundaryLog
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.mode_commands import declare, remember_turn

Json = dict[str, Any]

GENERAL_ONLY = {"general": {"memories": 0, "embedder": "general"}}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundaries, "PUBLISH_INTERVAL_S", 0.01)


def values(pipeline: InMemoryPipeline, user: str = "u1") -> list[Json | None]:
    return InMemoryBoundaryLog(pipeline.topics).values(user)


async def forget_user(pipeline: InMemoryPipeline) -> None:
    scope = {"user_id": "u1", "project_id": "default"}
    command = {"schema": "command.v1", "command": "forget", "scope": scope, "arguments": {"user": True}}
    assert (await pipeline.ask(pipeline.names.commands, command))["status"] == "ok"


async def publish_all(pipeline: InMemoryPipeline) -> None:
    for partition in range(pipeline.partitions):
        await pipeline.telling.publish(partition)


async def told(pipeline: InMemoryPipeline, user: str = "u1", **wanted: Any) -> Json:
    """Wait until the last record of a user has these fields, and return it."""

    def is_told() -> bool:
        last = (values(pipeline, user) or [None])[-1]
        return last is not None and all(last[name] == value for name, value in wanted.items())

    try:
        await pipeline.until(is_told)
    except TimeoutError:
        raise AssertionError(f"{wanted} is never told, but {values(pipeline, user)[-1:]}") from None
    return dict(values(pipeline, user)[-1] or {})


async def test_a_boundary_is_told_with_all_that_it_has(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "pets")
    await remember_turn(pipeline, "The cat sleeps.", mode="pets", occurred_at="2026-03-01T09:30:00Z")
    await remember_turn(
        pipeline, "The dog barks.", mode="pets", conversation_id="c2", occurred_at="2026-03-03T09:00:00Z"
    )
    other = {"scope": {"user_id": "u1", "project_id": "p2"}, "occurred_at": "2026-03-02T09:30:00Z"}
    await remember_turn(pipeline, "The rent is due.", **other)
    found = await told(pipeline, memories=3, embedding={"ready": 3, "pending": 0, "stale": 0, "failed": 0})
    assert found == {
        "schema": "boundary.v1",
        "boundary": "u1",
        "scope": {"user_id": "u1"},
        "projects": 2,
        "conversations": 3,
        "memories": 3,
        "modes": {"general": {"memories": 1, "embedder": "general"}, "pets": {"memories": 2, "embedder": "tiny32"}},
        "embedding": {"ready": 3, "pending": 0, "stale": 0, "failed": 0},
        "corrections": 0,
        "first": "2026-03-01T09:30:00Z",
        "last": "2026-03-03T09:00:00Z",
    }


async def test_items_of_turns_are_no_memories_of_their_own(pipeline: InMemoryPipeline) -> None:
    await remember_turn(pipeline, "We decided to use Postgres for the billing service.")
    assert sorted(memory.origin for memory in pipeline.memories.all()) == ["extracted", "said"]
    await told(pipeline, memories=1, embedding={"ready": 1, "pending": 0, "stale": 0, "failed": 0})


async def test_the_name_of_a_boundary_is_its_key_and_its_scope_the_user(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember("Hello.", scope={"user_id": "a/b%"}, user="a/b%")
    assert (await told(pipeline, "a%2Fb%25", memories=1))["scope"] == {"user_id": "a/b%"}


async def test_memories_that_wait_for_their_vectors_are_pending(pipeline: InMemoryPipeline) -> None:
    pipeline.index.down()
    await pipeline.remember("The cat sleeps.")
    await told(pipeline, embedding={"ready": 0, "pending": 1, "stale": 0, "failed": 0})
    pipeline.index.up()
    await told(pipeline, embedding={"ready": 1, "pending": 0, "stale": 0, "failed": 0})


async def test_declared_renamed_and_moved_modes_are_told(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "pets")
    await told(pipeline, memories=0, modes={**GENERAL_ONLY, "pets": {"memories": 0, "embedder": "tiny32"}}, first=None)
    accepted = await remember_turn(pipeline, "The cat sleeps.", mode="pets")
    await pipeline.command("rename_mode", name="pets", new_name="animals")
    await told(pipeline, modes={**GENERAL_ONLY, "animals": {"memories": 1, "embedder": "tiny32"}})
    await pipeline.command("set_memory_mode", memory_id=accepted["memory_id"], mode="general")
    moved = {"animals": {"memories": 0, "embedder": "tiny32"}, "general": {"memories": 1, "embedder": "general"}}
    await told(pipeline, modes=moved)
    await declare(pipeline, "animals", "tiny48")
    await told(pipeline, modes=moved | {"animals": {"memories": 0, "embedder": "tiny48"}})


async def test_a_consolidation_changes_the_number_of_memories(pipeline: InMemoryPipeline) -> None:
    await remember_many(pipeline, 5)
    await told(pipeline, memories=5)
    superseded = (await consolidate(pipeline))["superseded"]
    await told(pipeline, memories=5 - len(superseded) + 1)


async def test_what_was_forgotten_one_by_one_leaves_a_boundary_that_had_something(pipeline: InMemoryPipeline) -> None:
    accepted = await remember_turn(pipeline, "The cat sleeps.")
    await told(pipeline, memories=1)
    await pipeline.command("forget", memory_id=accepted["memory_id"])
    await told(pipeline, memories=0, projects=0, conversations=0, modes=GENERAL_ONLY, first=None, last=None)


async def test_a_forgotten_user_has_a_tombstone_until_there_is_something_new(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "pets")
    await remember_turn(pipeline, "The cat sleeps.")
    await remember_turn(pipeline, "The rent is due.", scope={"user_id": "u2"})
    await told(pipeline, memories=1)
    await forget_user(pipeline)
    await pipeline.topics.settled()
    await told(pipeline, "u2", memories=1)
    await publish_all(pipeline)
    assert values(pipeline)[-1] is None
    await remember_turn(pipeline, "The dog barks.")
    await told(pipeline, memories=1)


async def test_a_forgotten_user_stays_so_after_a_restart(tmp_path: Path) -> None:
    world = InMemoryPipeline(tmp_path)
    async with world.running() as pipeline:
        await declare(pipeline, "pets")
        await remember_turn(pipeline, "The cat sleeps.")
        await told(pipeline, memories=1)
        await forget_user(pipeline)
        await pipeline.topics.settled()
    async with world.running() as pipeline:
        await remember_turn(pipeline, "The rent is due.", scope={"user_id": "u2"})
        await told(pipeline, "u2", memories=1)
        for partition in range(pipeline.partitions):
            await pipeline.telling.compare(partition)
        assert values(pipeline)[-1] is None


@pytest.mark.parametrize("publishers", [0, 1])
async def test_a_count_that_is_under_way_does_not_follow_a_tombstone(
    pipeline: InMemoryPipeline, monkeypatch: pytest.MonkeyPatch, publishers: int
) -> None:
    counted, forgotten, read = threading.Event(), threading.Event(), SqliteBoundaryCounts.read

    def read_slowly(counts: SqliteBoundaryCounts, partition: int, names: Sequence[str]) -> Any:
        found = read(counts, partition, names)
        if "u1" in names:
            counted.set()
            forgotten.wait(10)
        return found

    await remember_turn(pipeline, "The cat sleeps.")
    await told(pipeline, memories=1)
    monkeypatch.setattr(SqliteBoundaryCounts, "read", read_slowly)
    await remember_turn(pipeline, "The dog barks.")
    await pipeline.until(counted.is_set)
    await forget_user(pipeline)
    others = [asyncio.create_task(publish_all(pipeline)) for _ in range(publishers)]
    await asyncio.sleep(0.01)
    forgotten.set()
    await asyncio.gather(*others)
    await pipeline.topics.settled()
    await publish_all(pipeline)
    assert values(pipeline)[-1] is None


async def test_what_a_kill_has_lost_is_told_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundaries, "PUBLISH_INTERVAL_S", 1000)
    world = InMemoryPipeline(tmp_path)
    async with world.running() as pipeline:
        await remember_turn(pipeline, "The rent is due.", scope={"user_id": "u2"})
        accepted = await remember_turn(pipeline, "Gone later.", scope={"user_id": "u3"})
        await publish_all(pipeline)
        await remember_turn(pipeline, "The cat sleeps.")
        await pipeline.command("forget", user="u3", memory_id=accepted["memory_id"])
        await pipeline.topics.settled()
    before = len(values(world, "u2"))
    assert len(values(world)) == 0
    assert before > 0
    async with world.running() as pipeline:
        await told(pipeline, memories=1)
        await told(pipeline, "u3", memories=0)
        assert len(values(pipeline, "u2")) == before


async def test_memories_that_no_search_finds_are_counted_and_told_apart(pipeline: InMemoryPipeline) -> None:
    await remember_turn(pipeline, "The cat sleeps.")
    await remember_turn(pipeline, "The safe code is 4711.", searchable=False)
    counted = {"ready": 1, "pending": 0, "stale": 0, "failed": 0, "not_applicable": 1}
    assert (await told(pipeline, memories=2, embedding=counted))["conversations"] == 1
    hidden = pipeline.memory("The safe code is 4711.").memory_id
    await pipeline.command("set_memory_visibility", memory_id=hidden, searchable=True)
    await told(pipeline, memories=2, embedding={"ready": 2, "pending": 0, "stale": 0, "failed": 0})


async def test_vectors_are_measured_by_their_states(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember("The kettle is blue.")
    await pipeline.remember("The kettle is red.", searchable=False)
    await pipeline.topics.settled()
    await pipeline.tables.commits.commit(range(pipeline.partitions))
    await pipeline.telling.measure_vectors()
    measured = re.findall(rb'modestream_vectors\{status="(\w+)"\} (\d)', pipeline.meters.exposition())
    assert dict(measured) == {b"eligible": b"1", b"pending": b"0", b"ready": b"1", b"stale": b"0", b"failed": b"0"}
