"""What filters a memory, and what follows for its vector and for a language model."""

import json

import pytest
from modestream_client.hits import Evidence

from agents.rules.categories.taxonomy import visible_category
from agents.rules.items.extracting import extract_by_rules
from agents.rules.items.item_merging import build_item, support_item_id, supports_of
from agents.rules.memory.visibility import (
    awaits_indexer,
    build_memory_view,
    build_mode_view,
    item_visibility,
    may_show_model,
    own_after_turn,
    with_visibility,
)
from schemas.state.categories import Category
from schemas.state.interaction import Interaction
from schemas.state.memories import Memory, TextVersion, TurnUnderstanding
from schemas.state.modes import EVERYWHERE, Mode, ModeDeclarations, Visibility
from tests.builders.memories import START, embedded_in, made

HIDDEN, PRIVATE = Visibility(searchable=False), Visibility(private=True)
TARGET = "The deploy target is fly.io now."


def declared(**flags: bool) -> ModeDeclarations:
    return ModeDeclarations(modes=(Mode(name="general", embedder="general", embedding_dim=384, **flags),))


def pending(memory: Memory) -> Memory:
    return memory.model_copy(update={"reading": TurnUnderstanding(status="pending")})


def test_modes_filter_adds_to_a_memorys_own() -> None:
    both = with_visibility(made("a"), HIDDEN, PRIVATE)
    assert both.visibility == Visibility(searchable=False, private=True)
    assert both.own_visibility == HIDDEN
    assert with_visibility(both, both.own_visibility, EVERYWHERE).visibility == HIDDEN


def test_memory_without_filters_is_left_as_it_is() -> None:
    memory = made("a", embedding=embedded_in("s1"))
    assert with_visibility(memory, EVERYWHERE, EVERYWHERE, asks_model=True) is memory


def test_hidden_memory_has_no_vector_and_gets_it_back() -> None:
    ready = made("a", embedding=embedded_in("s1"))
    hidden = with_visibility(ready, HIDDEN, EVERYWHERE)
    assert hidden.embedding.status == "not_applicable"
    assert hidden.embedding.space is None
    assert awaits_indexer(hidden), "its vector is to be removed"
    assert hidden.index_name != ready.index_name
    shown = with_visibility(hidden, EVERYWHERE, EVERYWHERE)
    assert shown.embedding.status == "pending"
    assert shown.embedding.content_hash is None
    assert shown.index_name == ready.index_name


def test_private_turn_does_not_wait_for_a_model_until_it_is_no_longer_private() -> None:
    private = with_visibility(pending(made("a")), PRIVATE, EVERYWHERE, asks_model=True)
    assert private.reading.status == "rules"
    assert with_visibility(private, EVERYWHERE, EVERYWHERE, asks_model=True).reading.status == "pending"
    assert with_visibility(private, EVERYWHERE, EVERYWHERE, asks_model=False).reading.status == "rules"


def test_refused_text_is_not_asked_about_again() -> None:
    reading = TurnUnderstanding(status="rules", model="unanswerable")
    private = with_visibility(made("a", reading=reading), PRIVATE, EVERYWHERE, asks_model=True)
    assert with_visibility(private, EVERYWHERE, EVERYWHERE, asks_model=True).reading.status == "rules"


def test_model_may_read_neither_a_private_memory_nor_one_of_a_private_mode() -> None:
    assert may_show_model(made("a"), declared())
    assert not may_show_model(made("a"), declared(private=True)), "before its record has it"
    assert not may_show_model(made("a", visibility=PRIVATE), declared())


@pytest.mark.parametrize(("searchable", "expected"), [(None, HIDDEN), (True, EVERYWHERE), (False, HIDDEN)])
def test_edit_keeps_a_filter_unless_it_says_otherwise(searchable: bool | None, expected: Visibility) -> None:
    assert own_after_turn(searchable, None, made("a", own_visibility=HIDDEN)) == expected


def test_items_of_filtered_turns_are_others_than_those_of_the_rest() -> None:
    turns = [made(TARGET, visibility=visibility) for visibility in (EVERYWHERE, HIDDEN, PRIVATE)]
    ids = [support_item_id(turn, supports_of(turn, extract_by_rules(turn))[0]) for turn in turns]
    assert len(set(ids)) == 3


def test_item_is_filtered_as_its_turn_and_by_the_mode_it_was_moved_to() -> None:
    turn = made(TARGET, visibility=PRIVATE)
    item = build_item("i", supports_of(turn, extract_by_rules(turn)), turn, None)
    assert item.visibility == PRIVATE
    assert item.own_visibility == PRIVATE
    moved = item.model_copy(update={"mode": "vault", "visibility": Visibility(searchable=False, private=True)})
    assert item_visibility(turn, moved) == moved.visibility


def test_category_shows_no_summary_of_a_hidden_memory() -> None:
    memory = made("Watered the tomatoes.", origin="distilled", type="semantic")
    rests = {memory.memory_id: memory.content_hash}
    category = Category(name="garden", summary=memory.text, anchors=(memory.memory_id,), rests_on=rests)
    assert visible_category(category, lambda _: memory).summary == memory.text
    hidden = memory.model_copy(update={"visibility": HIDDEN})
    assert not visible_category(category, lambda _: hidden).summary


MEMORY = made(
    "cello",
    mode="code",
    mode_source="model",
    versions=(TextVersion(text_hash="a", first_seen=START), TextVersion(text_hash="b", first_seen=START)),
    current=1,
    embedding=embedded_in("s1", "code"),
    evidence=(Evidence(turn_id="t-0", start=0, end=5),),
    reading=TurnUnderstanding(
        status="model",
        text_hash="b",
        topic="music",
        intent="learn",
        operation="play",
        times=("2026-03-01",),
        interaction=Interaction(mode="LEARNING", confidence=0.87654),
        model="small",
        prompt="understand-1",
    ),
)


def test_memory_view_hides_internal_fields() -> None:
    shown = build_memory_view(MEMORY)
    assert shown["text"] == "cello"
    assert shown["mode"] == "code"
    assert shown["mode_source"] == "model"
    assert shown["scope"] == {"user_id": "ana", "project_id": "default"}
    assert shown["evidence"] == [{"turn_id": "t-0", "start": 0, "end": 5}]
    assert shown["embedding"]["status"] == "ready"
    assert shown["embedding"]["place"] == {"mode": "code", "space": "s1"}
    assert shown["occurred_at"] == "2026-02-01T10:00:00Z"
    assert not shown.keys() & {"boundary", "source", "latest", "latest_at", "current", "reading", "text_hash"}


def test_versions_are_numbered_and_the_current_one_marked() -> None:
    shown = build_memory_view(MEMORY)
    assert shown["version"] == 2
    assert [(version["version"], version["current"], version["text_hash"]) for version in shown["versions"]] == [
        (1, False, "a"),
        (2, True, "b"),
    ]


def test_understanding_is_flattened_into_the_view() -> None:
    shown = build_memory_view(MEMORY)
    assert {name: shown[name] for name in ("topic", "intent", "operation", "times", "model", "prompt")} == {
        "topic": "music",
        "intent": "learn",
        "operation": "play",
        "times": ["2026-03-01"],
        "model": "small",
        "prompt": "understand-1",
    }
    assert shown["understanding"] == "model"
    assert shown["interaction_mode"] == "LEARNING"
    assert shown["interaction_confidence"] == 0.877


def test_pending_understanding_is_shown() -> None:
    shown = build_memory_view(made("cello", reading=TurnUnderstanding(status="pending")))
    assert shown["understanding"] == "pending"
    assert shown["interaction_mode"] is None
    assert shown["interaction_confidence"] is None


def test_view_is_json_serialisable() -> None:
    assert json.loads(json.dumps(build_memory_view(MEMORY)))["text"] == "cello"


def test_mode_view_has_dimension_and_default() -> None:
    mode = Mode(name="code", embedder="tiny32", embedding_dim=32, formerly=("old",))
    declared = ModeDeclarations(modes=(mode,), user_default="code", project_defaults={"p2": "general"})
    shown = build_mode_view(mode, declared, "p1")
    assert shown["name"] == "code"
    assert shown["embedder"] == "tiny32"
    assert shown["embedding_dim"] == 32
    assert shown["is_default"] is True
    assert build_mode_view(mode, declared, "p2")["is_default"] is False
    assert "formerly" not in shown
    assert json.loads(json.dumps(shown)) == shown
