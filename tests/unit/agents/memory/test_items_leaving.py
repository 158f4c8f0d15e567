"""Items that move, are forgotten or merged, alone and with their turns."""

import pytest

from agents.rules.items.claims import update_claim
from schemas.internal.events import Learned, Remembered
from schemas.state.memories import Claim, Memory
from schemas.state.understanding import Understanding
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.harnesses.items import AWS, FLY, HERE, PLAIN, ItemsHarness, known, sources


@pytest.fixture
def harness(words: SqliteLexicalIndex) -> ItemsHarness:
    return ItemsHarness(words)


def test_forgetting_all_removes_items_that_can_return(harness: ItemsHarness) -> None:
    for number in range(3):
        harness.say(FLY, number)
    harness.say(AWS, 4, scope={"user_id": "u1", "project_id": "p2"})
    assert harness.change("forget", whole="project") == 4
    assert list(harness.items()) == [AWS]
    harness.say(FLY, 9)
    assert set(harness.items()) == {AWS, FLY}


def test_moved_turn_moves_its_items(harness: ItemsHarness) -> None:
    harness.say(FLY, 1)
    moved = harness.say(FLY, 2)
    [before] = harness.items().values()
    harness.change("move", memory_id=moved.memory_id, to="code")
    items = {item.mode: item for item in harness.memories.all() if item.origin == "extracted"}
    assert {mode: sources(item) for mode, item in items.items()} == {"general": ["t1"], "code": ["t2"]}
    assert items["general"].memory_id == before.memory_id
    assert harness.get(moved.memory_id).items == (items["code"].memory_id,)
    assert Remembered(memory=items["code"]) in harness.events


def test_moved_item_moves_alone_and_stays_when_repeated(harness: ItemsHarness) -> None:
    turn = harness.say(FLY, 1)
    [item] = harness.items().values()
    harness.change("move", memory_id=item.memory_id, to="code")
    harness.say(FLY, 2)
    [moved] = harness.items().values()
    assert moved.memory_id == item.memory_id
    assert moved.mode == "code"
    assert moved.mode_source == "caller"
    assert sources(moved) == ["t1", "t2"]
    assert harness.get(turn.memory_id).mode == "general"


def test_items_follow_a_renamed_mode(harness: ItemsHarness) -> None:
    harness.say(FLY, 1)
    [item] = harness.items().values()
    harness.change("move", mode="general", to="notes")
    [moved] = harness.items().values()
    assert moved.mode == "notes"
    assert moved.memory_id != item.memory_id
    harness.say(FLY, 1, offset=5)
    assert list(harness.items().values()) == [moved]


def test_forgotten_item_does_not_return_in_any_mode(harness: ItemsHarness) -> None:
    turn = harness.say(f"{FLY} {PLAIN}", 1)
    [item] = harness.items().values()
    assert harness.change("forget", memory_id=item.memory_id) == 1
    assert harness.events_of(Learned)[0].memory == harness.get(turn.memory_id)
    assert harness.get(turn.memory_id).items == ()
    harness.say(f"{FLY} {PLAIN}", 1)
    harness.say(FLY, 1, offset=2)
    harness.change("move", memory_id=turn.memory_id, to="code")
    harness.say(FLY, 3, scope={"user_id": "u1", "project_id": "p2"})
    assert [item.scope["project_id"] for item in harness.items().values()] == ["p2"], "another scope has its own"


def merged(harness: ItemsHarness) -> tuple[Memory, Memory, Memory]:
    """Merge a turn's item into another turn's item; return the turn, its item and the other turn."""
    turn = harness.say("I am allergic to nuts.", 1)
    harness.say("I am allergic to peanuts.", 2)
    items = harness.items()
    into, hidden = items["I am allergic to peanuts."], items["I am allergic to nuts."]
    supports = (*known(hidden).supports, *known(into).supports)
    harness.write(into.model_copy(update={"item": known(into).model_copy(update={"supports": supports})}))
    harness.write(hidden.model_copy(update={"superseded_by": into.memory_id, "superseded_in": "run"}))
    harness.write(turn.model_copy(update={"items": (hidden.memory_id, into.memory_id)}))
    return turn, hidden, harness.get(into.memory_id)


def test_merged_item_gets_evidence_of_either_text(harness: ItemsHarness) -> None:
    turn, hidden, into = merged(harness)
    assert harness.say("I am allergic to nuts.", 5).items == (into.memory_id,)
    assert harness.understand(turn, Understanding()).items == (into.memory_id, hidden.memory_id)
    assert sources(harness.get(into.memory_id)) == ["t1", "t2", "t5"]
    assert sources(harness.get(hidden.memory_id)) == ["t1"]


def test_edit_removes_its_evidence_from_the_merged_item(harness: ItemsHarness) -> None:
    turn, hidden, into = merged(harness)
    harness.say(PLAIN, 1, offset=7)
    assert harness.memories.get(HERE, hidden.memory_id) is None
    assert sources(harness.get(into.memory_id)) == ["t2"]
    assert harness.get(turn.memory_id).items == ()


def test_edit_to_a_merged_text_keeps_its_evidence(harness: ItemsHarness) -> None:
    _, hidden, into = merged(harness)
    harness.say("I am allergic to peanuts.", 1, offset=7)
    assert harness.memories.get(HERE, hidden.memory_id) is None
    assert sources(harness.get(into.memory_id)) == ["t1", "t2"]


def test_forgetting_an_item_forgets_items_merged_into_it(harness: ItemsHarness) -> None:
    _, _, into = merged(harness)
    assert harness.change("forget", memory_id=into.memory_id) == 2
    assert harness.items() == {}
    harness.say("I am allergic to nuts.", 1)
    assert harness.items() == {}


def test_forget_killed_after_the_claims_were_written_makes_the_former_value_current(harness: ItemsHarness) -> None:
    harness.say(FLY, 1)
    later = harness.say(AWS, 2)
    # A commit writes the rows of claims before those of memories, and a kill may leave only the first ones.
    for (partition, key), stored in list(harness.claims.stored.items()):
        harness.claims.put(partition, key, update_claim(Claim.model_validate_json(stored), later.items[0]))
    harness.change("forget", memory_id=later.memory_id)
    assert [item.superseded_by for item in harness.items().values()] == [None]
