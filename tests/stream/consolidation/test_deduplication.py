"""Items in a consolidation: duplicates merge, old ones decay, and each only once."""

import pytest

from schemas.state.memories import Memory
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json

DAY_S = 86_400


async def remember_daily(pipeline: InMemoryPipeline, *texts: str) -> None:
    """Remember turns a day apart, with their texts as ids."""
    for number, text in enumerate(texts):
        await pipeline.remember(text, text, occurred_at=f"2026-02-{number + 1:02}T08:00:00Z")
    await pipeline.topics.settled()


async def consolidate_items(pipeline: InMemoryPipeline) -> list[Json]:
    trigger = {"schema": "consolidate.v1", "scope": {"user_id": "u1"}, "mode": None}
    reply = await pipeline.ask(pipeline.names.consolidate, trigger)
    assert reply["status"] == "ok", reply
    await pipeline.topics.settled()
    return list(reply["result"]["diff"])


def items(pipeline: InMemoryPipeline) -> dict[str, Memory]:
    return {
        memory.text: memory
        for memory in pipeline.memories.all()
        if memory.origin == "extracted" and not memory.superseded_by
    }


ONCE, TWICE = "I prefer tea to coffee.", "I prefer the tea to coffee."


async def test_equal_items_merge_with_the_evidence_of_both(pipeline: InMemoryPipeline) -> None:
    await remember_daily(pipeline, ONCE, TWICE)
    assert len(items(pipeline)) == 2
    diff = await consolidate_items(pipeline)
    assert [(change["op"], change["before"]) for change in diff if change["op"] == "merge"] == [("merge", TWICE)]
    [item] = items(pipeline).values()
    assert {quotation.turn_id for quotation in item.evidence} == {ONCE, TWICE}
    assert item.item is not None
    assert item.item.confidence > 0.8
    assert not [change for change in await consolidate_items(pipeline) if change["op"] == "merge"]


@pytest.mark.parametrize(("gone", "left"), [(ONCE, TWICE), (TWICE, ONCE)])
async def test_merged_item_keeps_the_evidence_of_remaining_turns(
    pipeline: InMemoryPipeline, gone: str, left: str
) -> None:
    await remember_daily(pipeline, ONCE, TWICE)
    await consolidate_items(pipeline)
    await pipeline.command("forget", turn_id=gone, conversation_id="c1")
    await pipeline.topics.settled()
    [item] = items(pipeline).values()
    assert item.text == left
    assert [quotation.turn_id for quotation in item.evidence] == [left]


async def test_repeated_turn_after_a_merge_changes_nothing(pipeline: InMemoryPipeline) -> None:
    await remember_daily(pipeline, ONCE, TWICE)
    await consolidate_items(pipeline)
    before = items(pipeline)
    await remember_daily(pipeline, ONCE, TWICE)
    assert items(pipeline) == before


async def test_old_items_decay_once(pipeline: InMemoryPipeline) -> None:
    await remember_daily(pipeline, ONCE)
    await consolidate_items(pipeline)
    fresh = items(pipeline)[ONCE].item
    pipeline.clock.forward(60 * DAY_S)
    diff = await consolidate_items(pipeline)
    old = items(pipeline)[ONCE].item
    assert fresh is not None
    assert old is not None
    assert old.stability < fresh.stability
    assert [(change["op"], change["after"]) for change in diff] == [("decay", str(old.stability))]
    assert await consolidate_items(pipeline) == []


async def test_categories_are_filled_and_summed_up_in_the_run(pipeline: InMemoryPipeline) -> None:
    await remember_daily(pipeline, ONCE, "I like green tea most.", "I prefer tea without milk.")
    await pipeline.command("declare_category", name="tea", description="tea, green tea, coffee and milk that I prefer")
    await consolidate_items(pipeline)
    shown = (await pipeline.command("get_category", name="tea"))["result"]
    assert shown["name"] == "tea"
    assert await consolidate_items(pipeline) == []


async def test_intention_entries_merge_with_their_items(pipeline: InMemoryPipeline) -> None:
    once, twice = "We decided to use Postgres for billing.", "We actually decided to use Postgres for billing."
    await remember_daily(pipeline, once, twice)
    shown = (await pipeline.command("get_intention"))["result"]["decisions"]
    assert [entry["text"] for entry in shown] == [once, twice]
    diff = await consolidate_items(pipeline)
    [(name, before, after)] = [
        (change["name"], change["before"], change["after"]) for change in diff if change["op"] == "merge_entry"
    ]
    assert name == "decisions"
    assert before == twice
    assert after == twice
    [entry] = (await pipeline.command("get_intention"))["result"]["decisions"]
    assert {quotation["turn_id"] for quotation in entry["evidence"]} == {once, twice}
    assert not [change for change in await consolidate_items(pipeline) if change["op"] == "merge_entry"]
