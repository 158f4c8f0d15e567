"""Items over the whole map: found, indexed, told of, replaced, forgotten, and the same after a replay."""

import pytest

from schemas.events import Learned
from schemas.memories import Memory, item_index_name
from schemas.modes import GENERAL
from tests.worlds.in_memory_pipeline import InMemoryMap, Json, commanded, turn

FLY, AWS = "The deploy target is fly.io now.", "The deploy target is AWS."
PLAIN = "Chapter one tells of the lantern."


def items(the_map: InMemoryMap) -> dict[str, Memory]:
    """All items by their texts."""
    return {one.text: one for one in the_map.memories.all() if one.origin == "extracted"}


def learned(the_map: InMemoryMap) -> list[Learned]:
    """What was told of turns, in order."""
    records = the_map.topics.records(the_map.names.learned)
    return [Learned.model_validate_json(one.value or b"") for one in records]


async def vectors(the_map: InMemoryMap) -> set[str]:
    """The ids of all that has a vector."""
    ids = [one.memory_id for one in the_map.memories.all()]
    return await the_map.vectors_in(GENERAL, the_map.space(GENERAL, GENERAL).fingerprint, ids)


async def forget_user(the_map: InMemoryMap) -> Json:
    """Forget all that the user has said."""
    return await the_map.ask(the_map.names.commands, commanded("forget") | {"arguments": {"user": True}})


async def test_an_item_is_embedded_shown_and_told_of(the_map: InMemoryMap) -> None:
    said = await the_map.ask(the_map.names.turns, turn(f"{PLAIN} {FLY}", "t-1"))
    await the_map.topics.settled()
    [item] = items(the_map).values()
    assert (item.embedding.status, item.index_name) == ("ready", item_index_name("u1"))
    assert await vectors(the_map) == {item.memory_id, said["result"]["memory_id"]}
    shown = (await the_map.command("get_memory", memory_id=item.memory_id))["result"]
    assert (shown["text"], shown["kind"], shown["valid_until"], shown["origin"]) == (FLY, "fact", None, "extracted")
    assert "supports" not in shown
    assert (await the_map.command("get_memory", memory_id=said["result"]["memory_id"]))["result"]["items"] == [
        item.memory_id
    ]
    [told] = learned(the_map)
    assert (told.memory_id, [one.text for one in told.items]) == (said["result"]["memory_id"], [FLY])


async def test_health_counts_turns_and_items_by_mode(the_map: InMemoryMap) -> None:
    await the_map.remember(FLY)
    await the_map.remember(PLAIN)
    await the_map.topics.settled()
    health = (await the_map.command("health"))["result"]
    counts = health["modes"][GENERAL]
    assert (counts["eligible"], counts["ready"], counts["items"]) == (3, 3, 1)
    assert health["telemetry"]["modes_in_use"] == 1


async def test_a_correction_replaces_an_item_and_leaves_its_turn(the_map: InMemoryMap) -> None:
    await the_map.remember(FLY, "t-1", occurred_at="2026-03-01T09:00:00Z")
    await the_map.remember(AWS, "t-2", occurred_at="2026-03-01T10:00:00Z")
    await the_map.topics.settled()
    kept = items(the_map)
    assert kept[FLY].superseded_by == kept[AWS].memory_id
    assert the_map.memory(FLY).superseded_by is None
    assert set(await the_map.texts("deploy target")) == {AWS, FLY}
    await the_map.command("forget", memory_id=the_map.memory(AWS).memory_id)
    await the_map.topics.settled()
    assert items(the_map)[FLY].superseded_by is None


async def test_what_is_forgotten_takes_its_items_and_vectors_along(the_map: InMemoryMap) -> None:
    await the_map.remember(FLY, "t-1")
    await the_map.remember(FLY, "t-2")
    await the_map.topics.settled()
    reply = await the_map.command("forget", turn_id="t-1", conversation_id="c1")
    assert reply["result"] == {"forgotten": 1}
    assert [one.turn_id for one in items(the_map)[FLY].evidence] == ["t-2"]
    reply = await forget_user(the_map)
    assert reply["result"] == {"forgotten": 2}
    await the_map.topics.settled()
    assert list(the_map.memories.all()) == []
    assert not any(kept.points for kept in the_map.index._collections.values())
    assert learned(the_map)[-1].memory is None
    reply = await forget_user(the_map)
    assert reply["result"] == {"forgotten": 0}


async def test_a_job_makes_the_vectors_of_items_again(the_map: InMemoryMap) -> None:
    await the_map.remember(FLY)
    await the_map.topics.settled()
    reply = await the_map.command("backfill")
    assert (reply["result"]["skipped"], reply["result"]["total"]) == (2, 2)
    [item] = items(the_map).values()
    await the_map.index.delete(the_map.space(GENERAL, GENERAL), [item.memory_id])
    the_map.clock.forward(1)
    reply = await the_map.command("reconcile")
    assert (reply["result"]["processed"], reply["result"]["orphans"]) == (1, 0)
    await the_map.topics.settled()
    assert item.memory_id in await vectors(the_map)


async def test_a_replay_into_nothing_gives_the_same_items(
    the_map: InMemoryMap, tmp_path_factory: pytest.TempPathFactory
) -> None:
    said = [(FLY, "t-1", 1), (AWS, "t-2", 2), (FLY, "t-3", 3), (PLAIN, "t-2", 2), (AWS, "t-4", 4)]
    for text, turn_id, hour in said:
        await the_map.remember(text, turn_id, occurred_at=f"2026-03-01T0{hour}:00:00Z")
    await the_map.topics.settled()
    async with InMemoryMap(tmp_path_factory.mktemp("other")).running() as other:
        for text, turn_id, hour in said * 2:
            await other.remember(text, turn_id, occurred_at=f"2026-03-01T0{hour}:00:00Z")
        await other.topics.settled()
        assert {text: (one.memory_id, one.evidence) for text, one in items(other).items()} == {
            text: (one.memory_id, one.evidence) for text, one in items(the_map).items()
        }
        assert items(other)[FLY].superseded_by == items(other)[AWS].memory_id
