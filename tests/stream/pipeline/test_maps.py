"""Maps over the whole pipeline in memory."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import command_message

Json = dict[str, Any]


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    async with InMemoryPipeline(tmp_path).running() as running:
        yield running


async def clouds(pipeline: InMemoryPipeline, user: str = "u1", **fields: Any) -> list[Json]:
    """The clouds of a map, once all records are processed."""
    await pipeline.topics.settled()
    reply = await pipeline.ask(pipeline.names.retrieve, map_message(user, **fields))
    assert reply["status"] == "ok", reply
    made: list[Json] = reply["result"]["clouds"]
    return made


def map_message(user: str = "u1", **fields: Any) -> Json:
    return {"schema": "map.v1", "scope": {"user_id": user, "project_id": "*"}} | fields


async def tell(pipeline: InMemoryPipeline, count: int, user: str = "u1", start: int = 0, **fields: Any) -> None:
    for number in range(start, start + count):
        await pipeline.remember(f"remark {number} about topic {number % 3}", f"t-{number}", user, **fields)


def places(cloud: Json) -> dict[str, tuple[float, float]]:
    return {point["text"]: (point["x"], point["y"]) for point in cloud["points"]}


def kept_files(pipeline: InMemoryPipeline) -> list[Path]:
    return sorted((pipeline.directory / "maps").rglob("*.npz"))


def kept_ids(pipeline: InMemoryPipeline) -> set[str]:
    found: set[str] = set()
    for file in kept_files(pipeline):
        with np.load(file) as stored:
            found.update(memory_id.decode() for memory_id in stored["ids"].tolist())
    return found


async def test_every_turn_is_a_point_of_its_modes_cloud(pipeline: InMemoryPipeline) -> None:
    await tell(pipeline, 12)
    [cloud] = await clouds(pipeline)
    assert len(cloud["points"]) == 12
    assert cloud["mode"] == "general"
    assert cloud["left_out"] == 0
    assert cloud["settled"] is True
    assert all(-1 <= each <= 1 for place in places(cloud).values() for each in place)
    assert {point["type"] for point in cloud["points"]} == {"episodic"}


async def test_map_is_the_same_after_a_restart(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    async with pipeline.running():
        await tell(pipeline, 12)
        before = await clouds(pipeline)
        await tell(pipeline, 1, start=20)
        later = await clouds(pipeline)
    async with pipeline.running():
        assert await clouds(pipeline) == later
    assert places(before[0]).items() < places(later[0]).items()


async def test_damaged_map_is_made_again(pipeline: InMemoryPipeline) -> None:
    await tell(pipeline, 12)
    [before] = await clouds(pipeline)
    [file] = kept_files(pipeline)
    file.write_bytes(file.read_bytes()[:300])
    [after] = await clouds(pipeline)
    assert places(after) == places(before)


async def test_forgotten_memory_is_on_no_map_also_on_the_disk(pipeline: InMemoryPipeline) -> None:
    await tell(pipeline, 12)
    [before] = await clouds(pipeline)
    gone = pipeline.memory("remark 3 about topic 0").memory_id
    assert gone in kept_ids(pipeline)
    await pipeline.command("forget", memory_id=gone)
    assert gone not in kept_ids(pipeline)
    assert len(kept_ids(pipeline)) == 11
    [after] = await clouds(pipeline)
    assert places(after).items() < places(before).items()


async def test_forgotten_user_has_no_map_on_the_disk(pipeline: InMemoryPipeline) -> None:
    await tell(pipeline, 5)
    await clouds(pipeline)
    await pipeline.ask(pipeline.names.commands, command_message("forget") | {"arguments": {"user": True}})
    assert kept_files(pipeline) == []
    [cloud] = await clouds(pipeline)
    assert cloud["points"] == []
    assert cloud["left_out"] == 0


async def test_memory_in_another_mode_leaves_the_map(pipeline: InMemoryPipeline) -> None:
    await pipeline.command("declare_mode", name="notes", embedder="general")
    await tell(pipeline, 6)
    await clouds(pipeline)
    moved = pipeline.memory("remark 3 about topic 0").memory_id
    await pipeline.command("set_memory_mode", memory_id=moved, mode="notes")
    assert moved not in kept_ids(pipeline)
    both = {cloud["mode"]: cloud for cloud in await clouds(pipeline, mode="*")}
    assert {mode: len(cloud["points"]) for mode, cloud in both.items()} == {"general": 5, "notes": 1}
    assert both["general"]["space"] == both["notes"]["space"]


async def test_edited_memory_gets_another_place(pipeline: InMemoryPipeline) -> None:
    await tell(pipeline, 12)
    [before] = await clouds(pipeline)
    memory_id = pipeline.memory("remark 3 about topic 0").memory_id
    await pipeline.remember("something else entirely", "t-3")
    [after] = await clouds(pipeline)
    place = {point["memory_id"]: (point["x"], point["y"]) for point in after["points"]}
    assert place[memory_id] != places(before)["remark 3 about topic 0"]
    others = {text: at for text, at in places(before).items() if text != "remark 3 about topic 0"}
    assert others.items() < places(after).items()


async def test_memory_without_a_vector_is_left_out(pipeline: InMemoryPipeline) -> None:
    pipeline.embedders.missing("general")
    await tell(pipeline, 3)
    [cloud] = await clouds(pipeline)
    assert cloud["points"] == []
    assert cloud["left_out"] == 3


async def test_limit_keeps_every_conversation_visible(pipeline: InMemoryPipeline) -> None:
    await tell(pipeline, 20, conversation_id="long")
    await tell(pipeline, 1, start=20, conversation_id="short")
    [cloud] = await clouds(pipeline, limit=4)
    assert len(cloud["points"]) == 4
    assert cloud["left_out"] == 17
    assert {point["conversation_id"] for point in cloud["points"]} == {"long", "short"}
    assert await clouds(pipeline, limit=4) == [cloud]


async def test_project_and_times_select_points_and_move_none(pipeline: InMemoryPipeline) -> None:
    await tell(pipeline, 8, occurred_at="2026-03-01T10:00:00Z")
    await tell(pipeline, 1, start=9, scope={"user_id": "u1", "project_id": "p2"}, occurred_at="2026-03-02T10:00:00Z")
    [every] = await clouds(pipeline)
    [project] = await clouds(pipeline, scope={"user_id": "u1", "project_id": "p2"})
    [late] = await clouds(pipeline, since="2026-03-02T00:00:00Z")
    [early] = await clouds(pipeline, until="2026-03-02T00:00:00Z")
    assert places(project) == places(late) == {text: places(every)[text] for text in ["remark 9 about topic 0"]}
    assert places(early).keys() == places(every).keys() - places(late).keys()


async def test_another_users_memories_are_on_no_map(pipeline: InMemoryPipeline) -> None:
    await tell(pipeline, 5, user="u2")
    await tell(pipeline, 4, start=10)
    [cloud] = await clouds(pipeline)
    assert places(cloud).keys() == {f"remark {n} about topic {n % 3}" for n in range(10, 14)}
    [other] = await clouds(pipeline, user="u2")
    assert len(other["points"]) == 5


@pytest.mark.parametrize(("field", "value"), [("limit", 0), ("limit", 20001), ("limit", "many"), ("since", 3)])
async def test_bad_field_is_named(pipeline: InMemoryPipeline, field: str, value: Any) -> None:
    reply = await pipeline.ask(pipeline.names.retrieve, map_message(**{field: value}))
    assert reply["error"]["code"] == "invalid_value"
    assert reply["error"]["field"] == field


async def test_undeclared_mode_is_refused(pipeline: InMemoryPipeline) -> None:
    reply = await pipeline.ask(pipeline.names.retrieve, map_message(mode="never"))
    assert reply["error"]["code"] == "unknown_mode"


async def test_index_out_of_reach_costs_an_error_and_no_forgetting(pipeline: InMemoryPipeline) -> None:
    await tell(pipeline, 5)
    await clouds(pipeline)
    gone = pipeline.memory("remark 3 about topic 0").memory_id
    pipeline.index.down()
    reply = await pipeline.ask(pipeline.names.retrieve, map_message())
    assert reply["error"]["code"] == "unavailable"
    assert (await pipeline.command("forget", memory_id=gone))["result"]["forgotten"] == 1
    assert gone not in kept_ids(pipeline)
    pipeline.index.up()
