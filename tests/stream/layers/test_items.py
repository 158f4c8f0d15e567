"""Items through the whole pipeline: extracted, indexed, published, replaced, forgotten, and unchanged by a replay."""

import pytest

from schemas.internal.events import Learned
from schemas.state.memories import Memory, item_index_name
from schemas.state.modes import GENERAL
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json, command_message, turn_message

FLY, AWS = "The deploy target is fly.io now.", "The deploy target is AWS."
PLAIN = "Chapter one tells of the lantern."


def items(pipeline: InMemoryPipeline) -> dict[str, Memory]:
    return {memory.text: memory for memory in pipeline.memories.all() if memory.origin == "extracted"}


def learned(pipeline: InMemoryPipeline) -> list[Learned]:
    records = pipeline.topics.records(pipeline.names.learned)
    return [Learned.model_validate_json(record.value or b"") for record in records]


async def vectors(pipeline: InMemoryPipeline) -> set[str]:
    ids = [memory.memory_id for memory in pipeline.memories.all()]
    return await pipeline.vectors_in(GENERAL, pipeline.space(GENERAL, GENERAL).fingerprint, ids)


async def forget_user(pipeline: InMemoryPipeline) -> Json:
    return await pipeline.ask(pipeline.names.commands, command_message("forget") | {"arguments": {"user": True}})


async def test_item_is_embedded_shown_and_published(pipeline: InMemoryPipeline) -> None:
    accepted = await pipeline.ask(pipeline.names.turns, turn_message(f"{PLAIN} {FLY}", "t-1"))
    await pipeline.topics.settled()
    [item] = items(pipeline).values()
    assert item.embedding.status == "ready"
    assert item.index_name == item_index_name("u1")
    assert await vectors(pipeline) == {item.memory_id, accepted["result"]["memory_id"]}
    shown = (await pipeline.command("get_memory", memory_id=item.memory_id))["result"]
    assert shown["text"] == FLY
    assert shown["kind"] == "fact"
    assert shown["valid_until"] is None
    assert shown["origin"] == "extracted"
    assert "supports" not in shown
    assert (await pipeline.command("get_memory", memory_id=accepted["result"]["memory_id"]))["result"]["items"] == [
        item.memory_id
    ]
    [event] = learned(pipeline)
    assert event.memory_id == accepted["result"]["memory_id"]
    assert [item.text for item in event.items] == [FLY]


async def test_health_counts_turns_and_items_by_mode(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember(FLY)
    await pipeline.remember(PLAIN)
    await pipeline.topics.settled()
    health = (await pipeline.command("health"))["result"]
    counts = health["modes"][GENERAL]
    assert counts["eligible"] == 3
    assert counts["ready"] == 3
    assert counts["items"] == 1
    assert health["telemetry"]["modes_in_use"] == 1


async def test_correction_replaces_an_item_and_leaves_its_turn(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember(FLY, "t-1", occurred_at="2026-03-01T09:00:00Z")
    await pipeline.remember(AWS, "t-2", occurred_at="2026-03-01T10:00:00Z")
    await pipeline.topics.settled()
    before = items(pipeline)
    assert before[FLY].superseded_by == before[AWS].memory_id
    assert pipeline.memory(FLY).superseded_by is None
    assert set(await pipeline.texts("deploy target")) == {AWS, FLY}
    await pipeline.command("forget", memory_id=pipeline.memory(AWS).memory_id)
    await pipeline.topics.settled()
    assert items(pipeline)[FLY].superseded_by is None


async def test_forgetting_removes_items_and_vectors(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember(FLY, "t-1")
    await pipeline.remember(FLY, "t-2")
    await pipeline.topics.settled()
    reply = await pipeline.command("forget", turn_id="t-1", conversation_id="c1")
    assert reply["result"]["forgotten"] == 1
    assert [quotation.turn_id for quotation in items(pipeline)[FLY].evidence] == ["t-2"]
    reply = await forget_user(pipeline)
    assert reply["result"]["forgotten"] == 2
    await pipeline.topics.settled()
    assert list(pipeline.memories.all()) == []
    assert not any(before.points for before in pipeline.index.collections.values())
    assert learned(pipeline)[-1].memory is None
    reply = await forget_user(pipeline)
    assert reply["result"]["forgotten"] == 0


async def test_job_makes_the_vectors_of_items_again(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember(FLY)
    await pipeline.topics.settled()
    reply = await pipeline.command("backfill")
    assert reply["result"]["skipped"] == 2
    assert reply["result"]["total"] == 2
    [item] = items(pipeline).values()
    await pipeline.index.delete(pipeline.space(GENERAL, GENERAL), [item.memory_id])
    pipeline.clock.forward(1)
    reply = await pipeline.command("reconcile")
    assert reply["result"]["processed"] == 1
    assert reply["result"]["orphans"] == 0
    await pipeline.topics.settled()
    assert item.memory_id in await vectors(pipeline)


async def test_replay_into_nothing_gives_the_same_items(
    pipeline: InMemoryPipeline, tmp_path_factory: pytest.TempPathFactory
) -> None:
    accepted = [(FLY, "t-1", 1), (AWS, "t-2", 2), (FLY, "t-3", 3), (PLAIN, "t-2", 2), (AWS, "t-4", 4)]
    for text, turn_id, hour in accepted:
        await pipeline.remember(text, turn_id, occurred_at=f"2026-03-01T0{hour}:00:00Z")
    await pipeline.topics.settled()
    async with InMemoryPipeline(tmp_path_factory.mktemp("other")).running() as other:
        for text, turn_id, hour in accepted * 2:
            await other.remember(text, turn_id, occurred_at=f"2026-03-01T0{hour}:00:00Z")
        await other.topics.settled()
        assert {text: (item.memory_id, item.evidence) for text, item in items(other).items()} == {
            text: (item.memory_id, item.evidence) for text, item in items(pipeline).items()
        }
        assert items(other)[FLY].superseded_by == items(other)[AWS].memory_id
