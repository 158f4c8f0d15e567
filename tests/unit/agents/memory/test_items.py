"""Items of turns: extracted, repeated, edited and contradicted, by rules and by a model."""

from itertools import permutations
from typing import Any

import pytest

from schemas.internal.events import Forgotten, Learned, Remembered
from schemas.state.understanding import FoundItem, IntentionUpdate, Understanding
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.memories import embedded_in
from tests.harnesses.items import AWS, FLY, HERE, LOCAL, PLAIN, ItemsHarness, known, sources


@pytest.fixture
def harness(words: SqliteLexicalIndex) -> ItemsHarness:
    return ItemsHarness(words)


def test_extracted_item_is_a_memory_of_its_own(harness: ItemsHarness) -> None:
    turn = harness.say(f"Good morning! {FLY}", 1, speaker="Ana")
    [item] = harness.items().values()
    assert item.text == FLY
    assert item.origin == "extracted"
    assert item.type == "semantic"
    assert item.index_name == "u1//items"
    assert item.turn_id == "t1"
    assert item.conversation_id == "c1"
    assert item.role == "user"
    assert item.speaker == "Ana"
    assert item.occurred_at == turn.occurred_at
    assert item.mode == turn.mode
    assert item.scope == turn.scope
    [evidence] = item.evidence
    assert evidence.memory_id == turn.memory_id
    assert turn.text[evidence.start : evidence.end] == FLY
    assert known(item).kind == "fact"
    assert known(item).valid_from == turn.occurred_at
    assert turn.items == (item.memory_id,)
    assert harness.events_of(Remembered) == [Remembered(memory=turn), Remembered(memory=item)]


def test_event_size_does_not_grow_with_repeated_items(harness: ItemsHarness) -> None:
    pages = [{"uri": "file://page", "text": "The lantern hangs over the door of the old mill. " * 40}]
    sizes = []
    for number in range(6):
        turn = harness.say(f"Look at this page, {number}.", number, resources=pages)
        [event] = harness.events_of(Learned)
        assert {item.memory_id for item in event.items} == set(turn.items)
        assert {quotation.memory_id for item in event.items for quotation in item.evidence} == {turn.memory_id}
        sizes.append(len(event.model_dump_json()))
    assert max(sizes) < 1.05 * min(sizes)


def test_turn_without_items_publishes_only_for_embedding(harness: ItemsHarness) -> None:
    turn = harness.say(PLAIN, 1)
    assert harness.events == [Remembered(memory=turn)]


def test_repeated_item_gains_confidence(harness: ItemsHarness) -> None:
    harness.say(FLY, 1, speaker="Ana")
    [once] = harness.items().values()
    harness.say(FLY.replace("The", "the"), 2)
    [twice] = harness.items().values()
    assert twice.memory_id == once.memory_id
    assert sources(twice) == ["t1", "t2"]
    assert known(twice).confidence > known(once).confidence
    assert twice.turn_id is None
    assert twice.conversation_id is None
    assert twice.role is None
    assert twice.speaker is None
    assert twice.text == FLY.replace("The", "the")
    assert twice.occurred_at == harness.get(twice.evidence[1].memory_id or "").occurred_at


def test_redelivered_turn_changes_nothing(harness: ItemsHarness) -> None:
    harness.say(FLY, 1)
    harness.say(AWS, 2)
    before = harness.state()
    harness.say(AWS, 2)
    assert [event.memory.text for event in harness.events_of(Remembered)] == [AWS, AWS], (
        "a killed worker did not publish it"
    )
    harness.say(FLY, 1, offset=7)
    assert harness.events == []
    assert harness.state() == before


def test_edit_removes_items_of_the_old_text(harness: ItemsHarness) -> None:
    turn = harness.say(FLY, 1)
    [item] = harness.items().values()
    harness.write(item.model_copy(update={"embedding": embedded_in("s1")}))
    edited = harness.say(PLAIN, 1, offset=2)
    assert harness.items() == {}
    assert edited.items == ()
    place = embedded_in("s1").place
    assert harness.events_of(Forgotten) == [Forgotten(memory_id=item.memory_id, places=(place,))]
    assert harness.events_of(Learned) == [Learned(memory_id=turn.memory_id, scope=turn.scope, memory=edited)]
    harness.say(FLY, 1, offset=3)
    assert list(harness.items()) == [FLY], "it was removed, not forgotten"


def test_item_remains_while_any_turn_has_it(harness: ItemsHarness) -> None:
    first = harness.say(FLY, 1)
    second = harness.say(FLY, 2)
    assert harness.change("forget", memory_id=second.memory_id) == 1
    [item] = harness.items().values()
    assert sources(item) == ["t1"]
    assert item.turn_id == "t1"
    assert item.occurred_at == first.occurred_at
    assert harness.change("forget", memory_id=first.memory_id) == 2, "the turn and its item"
    assert harness.items() == {}


SAID = [(FLY, 1), (AWS, 2), (LOCAL, 3), (FLY.upper(), 4)]


@pytest.mark.parametrize("order", list(permutations(SAID)))
def test_last_contradicting_item_is_current_in_any_order(harness: ItemsHarness, order: Any) -> None:
    for text, number in order:
        harness.say(text, number, offset=number)
    items = harness.items()
    fly, aws, local = (items[text] for text in (FLY.upper(), AWS, LOCAL))
    assert [memory.superseded_by for memory in (aws, local, fly)] == [local.memory_id, fly.memory_id, None]
    assert [known(item).valid_until for item in (aws, local, fly)] == [local.occurred_at, fly.occurred_at, None]
    assert harness.words.memory_columns(HERE, aws.index_name).columns.superseded.sum() == 2


def test_forgetting_the_last_claim_restores_the_one_before(harness: ItemsHarness) -> None:
    first = harness.say(FLY, 1)
    last = harness.say(AWS, 2)
    assert harness.items()[FLY].superseded_by == harness.items()[AWS].memory_id
    assert [event.memory_id for event in harness.events_of(Learned)] == [first.memory_id, last.memory_id]
    harness.change("forget", memory_id=last.memory_id)
    item = harness.items()[FLY]
    assert item.superseded_by is None
    assert known(item).valid_until is None
    assert [event.memory_id for event in harness.events_of(Learned)] == [first.memory_id, last.memory_id]
    assert harness.events_of(Learned)[1].memory is None


def test_claims_of_other_scopes_and_modes_do_not_conflict(harness: ItemsHarness) -> None:
    harness.say(FLY, 1)
    harness.say(AWS, 2, scope={"user_id": "u1", "project_id": "p2"})
    assert {item.superseded_by for item in harness.items().values()} == {None}


def test_model_items_are_added_and_an_empty_answer_removes_nothing(harness: ItemsHarness) -> None:
    turn = harness.say(f"{FLY} {PLAIN}", 1)
    lantern = FoundItem(kind="fact", text="There is a lantern.", quote="tells of the lantern", confidence=0.6)
    read = harness.understand(turn, Understanding(items=(lantern,)))
    assert set(harness.items()) == {FLY, "There is a lantern."}
    assert set(read.items) == {item.memory_id for item in harness.items().values()}
    span = harness.items()["There is a lantern."].evidence[0]
    assert read.text[span.start : span.end] == "tells of the lantern"
    harness.understand(turn, None)
    assert set(harness.items()) == {FLY, "There is a lantern."}
    harness.understand(turn, Understanding())
    assert set(harness.items()) == {FLY}


def test_model_items_move_with_their_turn(harness: ItemsHarness) -> None:
    harness.modes.declare(
        harness.modes.get(HERE, "u1").visible(None)[0].model_copy(update={"name": "code"}),
        boundary="u1",
        partition=HERE,
    )
    turn = harness.say(FLY, 1)
    harness.understand(turn, Understanding(mode="code"))
    assert [item.mode for item in harness.items().values()] == ["code"]


def test_intention_update_of_a_model_is_published_each_time(harness: ItemsHarness) -> None:
    turn = harness.say(PLAIN, 1)
    aims = IntentionUpdate(goals=("ship it",))
    harness.understand(turn, Understanding(intention=aims))
    assert [event.update for event in harness.events_of(Learned)] == [aims]
    assert harness.say(FLY, 1, offset=2).reading.aims is None, "another text needs another answer"


@pytest.mark.parametrize("text", ["It works now, thanks!", "I finished the report."])
def test_resolving_turn_without_items_is_published(harness: ItemsHarness, text: str) -> None:
    turn = harness.say(text, 1)
    assert harness.events_of(Learned) == [Learned(memory_id=turn.memory_id, scope=turn.scope, memory=turn)]


def test_evidence_is_limited_to_the_latest_turns(harness: ItemsHarness) -> None:
    turns = [harness.say(FLY, number % 60, offset=number, turn_id=f"n{number}") for number in range(40)]
    [item] = harness.items().values()
    assert sources(item) == [f"n{number}" for number in range(8, 40)]
    for turn in turns:
        harness.change("forget", memory_id=turn.memory_id)
    assert harness.items() == {}
