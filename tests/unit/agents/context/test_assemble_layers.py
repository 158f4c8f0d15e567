"""Contexts with items and summaries: outdated rules, pinned items, category summaries."""

from datetime import timedelta
from typing import Any, Literal

import pytest
from modestream_client.hits import Evidence
from modestream_client.vocabulary import ItemKind

from agents.context import revised_rules
from agents.context.snapshot import CategorySummaries
from schemas.state.categories import Category, Taxonomy
from schemas.state.memories import Item, Memory
from schemas.state.modes import Visibility
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.stores import at_partition
from tests.builders.items import distilled_of, item_of, with_items
from tests.builders.memories import START, made
from tests.fakes.tables.categories import FakeCategories
from tests.harnesses.contexts import ContextHarness, chatter, contents

SCOPE = {"user_id": "ana", "project_id": "default"}
OLD = "The export must use OAuth."
OTHER = "All input must be validated."


def superseded_item(turn: Memory, text: str, **fields: Any) -> Memory:
    start = turn.text.index(text)
    span = Evidence(turn_id=turn.turn_id or "", start=start, end=start + len(text), memory_id=turn.memory_id)
    item = Item(kind="constraint", valid_until=START + timedelta(days=1))
    known: dict[str, Any] = {"kind": "constraint", "superseded_by": "new", "evidence": (span,), "item": item}
    return item_of(turn, text=text, **known | fields)


async def test_superseded_rule_is_not_pinned(library: ContextHarness) -> None:
    turn = made(OLD, 1)
    library.store(turn, made("Good evening.", 2))
    before = await library.assemble_context(interaction_mode="TASK")
    assert before.sticky == [turn.memory_id]
    assert before.sections["rules"] == [turn.memory_id]
    item = superseded_item(turn, OLD)
    library.store(with_items(turn, item), item)
    after = await library.assemble_context(interaction_mode="TASK")
    assert after.sticky == []
    assert after.sections["rules"] == []
    assert after.sections["recent_window"][0] == turn.memory_id, "the turn itself remains"


async def test_other_rules_of_the_turn_remain_pinned(library: ContextHarness) -> None:
    turn = made(f"{OLD} {OTHER}", 1)
    item = superseded_item(turn, OLD)
    library.store(with_items(turn, item), item)
    assert (await library.assemble_context()).sticky == [turn.memory_id]


async def test_merged_rule_remains_pinned(library: ContextHarness) -> None:
    turn = made(OLD, 1)
    item = superseded_item(turn, OLD, item=Item(kind="constraint"))
    library.store(with_items(turn, item), item)
    assert (await library.assemble_context()).sticky == [turn.memory_id]


async def test_rules_superseded_elsewhere_do_not_use_the_limit(
    library: ContextHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revised_rules, "MAX_OUTDATED_ITEMS", 1)
    turn, elsewhere = made(OLD, 1), made(OLD, 2, project="p2")
    library.store(turn, elsewhere, superseded_item(turn, OLD), superseded_item(elsewhere, OLD, memory_id="another"))
    assert (await library.assemble_context()).sticky == []


HINTED = "Grandmother would turn in her grave if anybody saw the ledger outside this house."


def read_by(turn: Memory, status: Literal["rules", "model"]) -> Memory:
    return turn.model_copy(update={"reading": turn.reading.model_copy(update={"status": status})})


@pytest.mark.parametrize(
    ("kind", "priority"), [("safety", 1000), ("correction", 900), ("constraint", 800), ("error", 700)]
)
async def test_rule_by_a_model_is_never_dropped(words: SqliteLexicalIndex, kind: ItemKind, priority: int) -> None:
    library = ContextHarness(words, asks_model=True)
    turn = read_by(made(HINTED, 1), "model")
    item = item_of(turn, text=HINTED, kind=kind)
    library.store(with_items(turn, item), item, made("Good evening.", 2))
    assert (await library.assemble_context()).sticky == [turn.memory_id]
    scarce = await library.assemble_context(budget_tokens=300, system_prompt="x " * 230)
    assert [(breach.memory_id, breach.priority) for breach in scarce.breaches] == [(turn.memory_id, priority)]


@pytest.mark.parametrize(
    ("asks_model", "status", "kind", "revised"),
    [
        (False, "model", "constraint", False),
        (True, "rules", "constraint", False),
        (True, "model", "preference", False),
        (True, "model", "constraint", True),
    ],
)
async def test_resolution_needs_a_models_word_and_can_be_withdrawn(
    words: SqliteLexicalIndex, asks_model: bool, status: Literal["rules", "model"], kind: ItemKind, revised: bool
) -> None:
    library = ContextHarness(words, asks_model=asks_model)
    turn = read_by(made(HINTED, 1), status)
    item = superseded_item(turn, HINTED) if revised else item_of(turn, text=HINTED, kind=kind)
    library.store(with_items(turn, item), item)
    assert (await library.assemble_context()).sticky == []


async def test_item_can_be_pinned_in_its_own_scope(library: ContextHarness) -> None:
    turn = made(f"We spoke at length. {OTHER}", 1, conversation_id="c2")
    item = item_of(turn, text=OTHER)
    removed = superseded_item(turn, "We spoke at length.")
    library.store(turn, item, removed)
    result, warnings = await library.ask(pins=[item.memory_id, removed.memory_id])
    assert result.sections["retrieved_evidence"] == [item.memory_id]
    assert [code for code, _ in warnings] == ["unknown_pin"]
    assert removed.memory_id in warnings[0][1]
    assert item.memory_id not in warnings[0][1]
    for stranger in ({"project": "p2"}, {"user": "ben"}):
        strange, warnings = await library.ask(pins=[item.memory_id], **stranger)
        assert contents(strange) == []
        assert [code for code, _ in warnings] == ["unknown_pin"]


async def test_capsules_are_summaries_and_not_items(library: ContextHarness) -> None:
    turns = [made(text, place, conversation_id="c2") for place, text in enumerate(("Tea at four.", "Tea at five."))]
    capsule, item = (
        distilled_of(*turns, text="Ana drinks tea in the afternoon."),
        item_of(turns[0], text="Tea at four."),
    )
    library.store(*turns, capsule, item)
    result = await library.assemble_context(interaction_mode="GENERAL")
    assert result.sections["capsules"] == [capsule.memory_id]


def with_a_summary(library: ContextHarness, summary: str, *sources: Memory) -> None:
    categories = FakeCategories()
    rests_on = {source.memory_id: source.content_hash for source in sources}
    health = Category(
        name="health", description="doctors", summary=summary, anchors=tuple(rests_on), rests_on=rests_on, declared=True
    )
    categories.put(0, SCOPE, Taxonomy(categories={"health": health}))
    library.capsules = CategorySummaries(library.stores.words, library.stores.memories, at_partition(categories, 0))
    library.__post_init__()


SUMMARY = "The dentist is Doctor Webb, and the knee heals slowly."


def sources(library: ContextHarness) -> list[Memory]:
    turns = [made(text, place, conversation_id="c2") for place, text in enumerate(("Doctor Webb.", "A slow knee."))]
    items = [item_of(turn, text=turn.text) for turn in turns]
    library.store(*turns, *items)
    return items


async def test_summary_of_a_matching_category_is_a_capsule(library: ContextHarness) -> None:
    with_a_summary(library, SUMMARY, *sources(library))
    result = await library.assemble_context(query="how is my health?", interaction_mode="GENERAL")
    assert result.sections["capsules"] == ["category:health"]
    assert f"health: {SUMMARY}" in contents(result)
    assert result.tokens["capsules"] > 0
    anywhere = await library.assemble_context(query="my knee", interaction_mode="GENERAL", project=["default", "p2"])
    assert anywhere.sections["capsules"] == ["category:default/health"]
    assert (await library.assemble_context(query="the harbour tram", interaction_mode="GENERAL")).sections[
        "capsules"
    ] == []


async def test_a_summary_of_what_is_private_is_not_for_a_model(library: ContextHarness) -> None:
    items = [each.model_copy(update={"visibility": Visibility(private=True)}) for each in sources(library)]
    library.store(*items)
    with_a_summary(library, SUMMARY, *items)
    result = await library.assemble_context(query="how is my health?", interaction_mode="GENERAL", for_model=True)
    assert result.sections["capsules"] == []


async def test_a_summary_shows_what_matches_alone(library: ContextHarness) -> None:
    turns = [made(text, place, conversation_id=f"c{2 + place}") for place, text in enumerate(("Dr Webb.", "A knee."))]
    items = [item_of(turn, text=turn.text) for turn in turns]
    library.store(*turns, *items)
    with_a_summary(library, SUMMARY, *items)
    asked = {"query": "how is my health?", "interaction_mode": "GENERAL", "filters": {"conversation_id": "c3"}}
    assert contents(await library.assemble_context(**asked)) == ["health: A knee."]


async def test_summary_without_its_sources_is_not_shown(library: ContextHarness) -> None:
    [webb, knee] = sources(library)
    with_a_summary(library, SUMMARY, webb, knee)
    del library.records[webb.memory_id]
    shown = contents(await library.assemble_context(query="how is my health?", interaction_mode="GENERAL"))
    assert not any("Webb" in text for text in shown)
    assert "health: A slow knee." in shown
    del library.records[knee.memory_id]
    assert contents(await library.assemble_context(query="how is my health?", interaction_mode="GENERAL")) == []


async def test_summary_is_omitted_if_its_turn_is_quoted(library: ContextHarness) -> None:
    expected = "health: The dentist is Doctor Webb and the knee heals slowly since the winter of last year."
    [turn] = [made(expected, 1)]
    library.store(turn)
    with_a_summary(library, expected.removeprefix("health: "), turn)
    result = await library.assemble_context(query="how is my health?", interaction_mode="GENERAL")
    assert contents(result) == [expected]
    assert result.sections["capsules"] == []


async def test_summary_without_room_is_dropped_and_the_budget_holds(library: ContextHarness) -> None:
    with_a_summary(library, SUMMARY + " More of it." * 50, *sources(library))
    library.store(*chatter(60, first=10))
    result = await library.assemble_context(query="how is my health?", interaction_mode="GENERAL", budget_tokens=600)
    assert "category:health" in result.dropped
    assert result.tokens["total"] <= 600
