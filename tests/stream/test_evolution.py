"""How items evolve in a consolidation: doubles become one, what is old fades, and all of it once."""

import pytest

from schemas.memories import Memory
from tests.worlds.in_memory_pipeline import InMemoryMap, Json

DAY_S = 86_400


async def said(the_map: InMemoryMap, *texts: str) -> None:
    """Turns whose ids are their texts, a day apart."""
    for number, text in enumerate(texts):
        await the_map.remember(text, text, occurred_at=f"2026-02-{number + 1:02}T08:00:00Z")
    await the_map.topics.settled()


async def evolve(the_map: InMemoryMap) -> list[Json]:
    """What one consolidation has changed."""
    trigger = {"schema": "consolidate.v1", "scope": {"user_id": "u1"}, "mode": None}
    reply = await the_map.ask(the_map.names.consolidate, trigger)
    assert reply["status"] == "ok", reply
    await the_map.topics.settled()
    return list(reply["result"]["diff"])


def items(the_map: InMemoryMap) -> dict[str, Memory]:
    """The items that stand, by their texts."""
    return {one.text: one for one in the_map.memories.all() if one.origin == "extracted" and not one.superseded_by}


ONCE, TWICE = "I prefer tea to coffee.", "I prefer the tea to coffee."


async def test_items_that_say_the_same_become_one_with_the_evidence_of_both(the_map: InMemoryMap) -> None:
    await said(the_map, ONCE, TWICE)
    assert len(items(the_map)) == 2
    diff = await evolve(the_map)
    assert [(one["op"], one["before"]) for one in diff if one["op"] == "merge"] == [("merge", TWICE)]
    [item] = items(the_map).values()
    assert {one.turn_id for one in item.evidence} == {ONCE, TWICE}
    assert item.item is not None
    assert item.item.confidence > 0.8
    assert not [one for one in await evolve(the_map) if one["op"] == "merge"]


@pytest.mark.parametrize(("gone", "left"), [(ONCE, TWICE), (TWICE, ONCE)])
async def test_what_was_merged_rests_on_what_is_left_when_a_turn_is_forgotten(
    the_map: InMemoryMap, gone: str, left: str
) -> None:
    await said(the_map, ONCE, TWICE)
    await evolve(the_map)
    await the_map.command("forget", turn_id=gone, conversation_id="c1")
    await the_map.topics.settled()
    [item] = items(the_map).values()
    assert item.text == left
    assert [one.turn_id for one in item.evidence] == [left]


async def test_a_turn_that_is_said_again_after_a_merge_changes_nothing(the_map: InMemoryMap) -> None:
    await said(the_map, ONCE, TWICE)
    await evolve(the_map)
    before = items(the_map)
    await said(the_map, ONCE, TWICE)
    assert items(the_map) == before


async def test_what_is_old_fades_once(the_map: InMemoryMap) -> None:
    await said(the_map, ONCE)
    await evolve(the_map)
    fresh = items(the_map)[ONCE].item
    the_map.clock.forward(60 * DAY_S)
    diff = await evolve(the_map)
    old = items(the_map)[ONCE].item
    assert fresh is not None
    assert old is not None
    assert old.stability < fresh.stability
    assert [(one["op"], one["after"]) for one in diff] == [("decay", str(old.stability))]
    assert await evolve(the_map) == []


async def test_categories_are_filled_and_summed_up_in_the_run(the_map: InMemoryMap) -> None:
    await said(the_map, ONCE, "I like green tea most.", "I prefer tea without milk.")
    await the_map.command("declare_category", name="tea", description="tea, green tea, coffee and milk that I prefer")
    await evolve(the_map)
    shown = (await the_map.command("get_category", name="tea"))["result"]
    assert shown["name"] == "tea"
    assert await evolve(the_map) == []


async def test_entries_of_the_intention_are_merged_with_their_items_and_told(the_map: InMemoryMap) -> None:
    once, twice = "We decided to use Postgres for billing.", "We actually decided to use Postgres for billing."
    await said(the_map, once, twice)
    shown = (await the_map.command("get_intention"))["result"]["decisions"]
    assert [one["text"] for one in shown] == [once, twice]
    diff = await evolve(the_map)
    [(name, before, after)] = [(one["name"], one["before"], one["after"]) for one in diff if one["op"] == "merge_entry"]
    assert (name, before, after) == ("decisions", twice, twice)
    [entry] = (await the_map.command("get_intention"))["result"]["decisions"]
    assert {one["turn_id"] for one in entry["evidence"]} == {once, twice}
    assert not [one for one in await evolve(the_map) if one["op"] == "merge_entry"]
