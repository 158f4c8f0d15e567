"""Items beside turns: made, merged, taken back, replaced and forgotten; whatever comes twice or in another order."""

from itertools import permutations
from typing import Any

import pytest

from agents.keep_items import Event
from agents.mode_spaces import ModeSpaces
from agents.remember import Remember
from agents.removed import removed_but_found
from schemas.changes import Change
from schemas.events import Forgotten, Learned, Remembered, Understood
from schemas.memories import Item, Memory, shelves
from schemas.scopes import Scope
from schemas.understanding import FoundItem, IntentionUpdate, Understanding
from streams.adapters.words.sqlite_words import SqliteWords
from tests.fake_claims import FakeClaims
from tests.fake_clock import FakeClock
from tests.fake_embedders import FakeEmbedders
from tests.fake_memories import FakeMemories
from tests.fake_modes import FakeModes
from tests.made_memories import embedded_in
from tests.made_turns import record, turn

HERE = record().partition
FLY, AWS, LOCAL = "The deploy target is fly.io now.", "The deploy target is AWS.", "The deploy target is port 81."
"""Three that say something else of the same."""

PLAIN = "Chapter one tells of the lantern."


class Keeping:
    """A keeper with its tables; `events` is all that followed, in order."""

    def __init__(self, words: SqliteWords) -> None:
        self.memories, self.words, self.claims, self.modes = FakeMemories(), words, FakeClaims(), FakeModes()
        spaces = ModeSpaces(self.modes, FakeEmbedders())
        self.keeper = Remember(self.memories, words, self.modes, spaces, self.claims)
        self.events: list[Event] = []

    def say(self, text: str, number: int, offset: int | None = None, **fields: Any) -> Memory:
        """Have a turn said at this minute, unless `fields` say otherwise; returns it as it is then."""
        known = {"turn_id": f"t{number}", "occurred_at": f"2026-03-01T09:{number:02}:00Z"}
        said = turn(text, **(known | fields))
        accepted = self.keeper.turn(said, record(offset=number if offset is None else offset))
        self.events = accepted.events
        return self.get(accepted.result.memory_id)

    def read(self, said: Memory, found: Understanding | None) -> Memory:
        """Have a language model answer about a turn."""
        event = Understood(
            memory_id=said.memory_id,
            text_hash=said.versions[said.current].text_hash,
            found=found,
            profile="default",
            prompt="p",
            at=FakeClock().now(),
        )
        self.events = self.keeper.understood(event, HERE).events
        return self.get(said.memory_id)

    def change(self, action: Any, **fields: Any) -> int:
        """Carry out a change; returns how many memories are gone by it."""
        change = Change(scope=Scope(user_id="u1", project_id="p1"), action=action, **fields)
        self.events = [event for _, events in self.keeper.changed(change, HERE) for event in events]
        return sum(isinstance(event, Forgotten) for event in self.events)

    def get(self, memory_id: str) -> Memory:
        """A record that is there."""
        memory = self.memories.get(HERE, memory_id)
        assert memory is not None
        return memory

    def write(self, memory: Memory) -> Memory:
        """Have this record."""
        self.words.put(HERE, memory)
        self.memories.put(HERE, memory)
        return memory

    def items(self) -> dict[str, Memory]:
        """All items by their texts; the words agree with the records."""
        there = list(self.memories.all())
        for shelf in shelves("u1"):
            ids = {one.memory_id for one in there if one.shelf == shelf}
            assert set(self.words.roster(HERE, shelf).number_of) == ids
        return {one.text: one for one in there if one.origin == "extracted"}

    def state(self) -> tuple[dict[str, str], dict[tuple[int, str], str]]:
        """Everything that is kept."""
        return {one.memory_id: one.model_dump_json() for one in self.memories.all()}, dict(self.claims.kept)

    def told(self, kind: type[Any]) -> list[Any]:
        """What followed of a kind."""
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def keeping(words: SqliteWords) -> Keeping:
    return Keeping(words)


def sources(item: Memory) -> list[str]:
    """The turns that an item rests on."""
    return [one.turn_id for one in item.evidence]


def known(item: Memory) -> Item:
    """What is known of an item."""
    assert item.item is not None
    return item.item


def test_what_is_found_in_a_turn_is_a_memory_beside_it(keeping: Keeping) -> None:
    said = keeping.say(f"Good morning! {FLY}", 1, speaker="Ana")
    [item] = keeping.items().values()
    assert (item.text, item.origin, item.type, item.shelf) == (FLY, "extracted", "semantic", "u1//items")
    assert (item.turn_id, item.conversation_id, item.role, item.speaker) == ("t1", "c1", "user", "Ana")
    assert (item.occurred_at, item.mode, item.scope) == (said.occurred_at, said.mode, said.scope)
    [evidence] = item.evidence
    assert (evidence.memory_id, said.text[evidence.start : evidence.end]) == (said.memory_id, FLY)
    assert known(item).kind == "fact"
    assert known(item).valid_from == said.occurred_at
    assert said.items == (item.memory_id,)
    assert keeping.told(Remembered) == [Remembered(memory=said), Remembered(memory=item)]


def test_an_event_of_a_turn_does_not_grow_with_the_turns_that_say_the_same(keeping: Keeping) -> None:
    pages = [{"uri": "file://page", "text": "The lantern hangs over the door of the old mill. " * 40}]
    sizes = []
    for number in range(6):
        said = keeping.say(f"Look at this page, {number}.", number, resources=pages)
        [told] = keeping.told(Learned)
        assert {one.memory_id for one in told.items} == set(said.items)
        assert {one.memory_id for item in told.items for one in item.evidence} == {said.memory_id}
        sizes.append(len(told.model_dump_json()))
    assert max(sizes) < 1.05 * min(sizes)


def test_a_turn_without_items_is_told_to_the_indexer_alone(keeping: Keeping) -> None:
    said = keeping.say(PLAIN, 1)
    assert keeping.events == [Remembered(memory=said)]


def test_what_is_said_again_is_surer_and_no_second_memory(keeping: Keeping) -> None:
    keeping.say(FLY, 1, speaker="Ana")
    [once] = keeping.items().values()
    keeping.say(FLY.replace("The", "the"), 2)
    [twice] = keeping.items().values()
    assert (twice.memory_id, sources(twice)) == (once.memory_id, ["t1", "t2"])
    assert known(twice).confidence > known(once).confidence
    assert (twice.turn_id, twice.conversation_id, twice.role, twice.speaker) == (None, None, None, None)
    assert (twice.text, twice.occurred_at) == (
        FLY.replace("The", "the"),
        keeping.get(twice.evidence[1].memory_id or "").occurred_at,
    )


def test_what_comes_again_changes_nothing(keeping: Keeping) -> None:
    keeping.say(FLY, 1)
    keeping.say(AWS, 2)
    before = keeping.state()
    keeping.say(AWS, 2)
    assert [event.memory.text for event in keeping.told(Remembered)] == [AWS, AWS], "a killed worker told nobody"
    keeping.say(FLY, 1, offset=7)
    assert keeping.events == []
    assert keeping.state() == before


def test_an_edit_takes_back_what_the_text_before_said(keeping: Keeping) -> None:
    said = keeping.say(FLY, 1)
    [item] = keeping.items().values()
    keeping.write(item.model_copy(update={"embedding": embedded_in("s1")}))
    edited = keeping.say(PLAIN, 1, offset=2)
    assert keeping.items() == {}
    assert edited.items == ()
    place = embedded_in("s1").place
    assert keeping.told(Forgotten) == [Forgotten(memory_id=item.memory_id, places=(place,))]
    assert keeping.told(Learned) == [Learned(memory_id=said.memory_id, scope=said.scope, memory=edited)]
    keeping.say(FLY, 1, offset=3)
    assert list(keeping.items()) == [FLY], "it was removed, not forgotten"


def test_an_item_stays_as_long_as_any_turn_says_it(keeping: Keeping) -> None:
    first = keeping.say(FLY, 1)
    second = keeping.say(FLY, 2)
    assert keeping.change("forget", memory_id=second.memory_id) == 1
    [item] = keeping.items().values()
    assert (sources(item), item.turn_id, item.occurred_at) == (["t1"], "t1", first.occurred_at)
    assert keeping.change("forget", memory_id=first.memory_id) == 2, "the turn and its item"
    assert keeping.items() == {}


def test_whoever_forgets_all_forgets_items_and_may_say_them_again(keeping: Keeping) -> None:
    for number in range(3):
        keeping.say(FLY, number)
    keeping.say(AWS, 4, scope={"user_id": "u1", "project_id": "p2"})
    assert keeping.change("forget", whole="project") == 4
    assert list(keeping.items()) == [AWS]
    keeping.say(FLY, 9)
    assert set(keeping.items()) == {AWS, FLY}


SAID = [(FLY, 1), (AWS, 2), (LOCAL, 3), (FLY.upper(), 4)]


@pytest.mark.parametrize("order", list(permutations(SAID)))
def test_of_what_contradicts_the_last_stands_whatever_comes_first(keeping: Keeping, order: Any) -> None:
    for text, number in order:
        keeping.say(text, number, offset=number)
    items = keeping.items()
    fly, aws, local = (items[text] for text in (FLY.upper(), AWS, LOCAL))
    assert [one.superseded_by for one in (aws, local, fly)] == [local.memory_id, fly.memory_id, None]
    assert [known(one).valid_until for one in (aws, local, fly)] == [local.occurred_at, fly.occurred_at, None]
    assert keeping.words.roster(HERE, aws.shelf).columns.superseded.sum() == 2


def test_without_the_last_the_one_before_stands_again(keeping: Keeping) -> None:
    first = keeping.say(FLY, 1)
    last = keeping.say(AWS, 2)
    assert keeping.items()[FLY].superseded_by == keeping.items()[AWS].memory_id
    assert [event.memory_id for event in keeping.told(Learned)] == [first.memory_id, last.memory_id]
    keeping.change("forget", memory_id=last.memory_id)
    item = keeping.items()[FLY]
    assert (item.superseded_by, known(item).valid_until) == (None, None)
    assert [event.memory_id for event in keeping.told(Learned)] == [first.memory_id, last.memory_id]
    assert keeping.told(Learned)[1].memory is None


def test_other_scopes_and_modes_contradict_nobody(keeping: Keeping) -> None:
    keeping.say(FLY, 1)
    keeping.say(AWS, 2, scope={"user_id": "u1", "project_id": "p2"})
    assert {item.superseded_by for item in keeping.items().values()} == {None}


def test_a_turn_that_is_moved_takes_its_items_along(keeping: Keeping) -> None:
    keeping.say(FLY, 1)
    moved = keeping.say(FLY, 2)
    [before] = keeping.items().values()
    keeping.change("move", memory_id=moved.memory_id, to="code")
    items = {item.mode: item for item in keeping.memories.all() if item.origin == "extracted"}
    assert {mode: sources(item) for mode, item in items.items()} == {"general": ["t1"], "code": ["t2"]}
    assert items["general"].memory_id == before.memory_id
    assert keeping.get(moved.memory_id).items == (items["code"].memory_id,)
    assert Remembered(memory=items["code"]) in keeping.events


def test_an_item_that_is_moved_goes_alone_and_stays_when_it_is_said_again(keeping: Keeping) -> None:
    said = keeping.say(FLY, 1)
    [item] = keeping.items().values()
    keeping.change("move", memory_id=item.memory_id, to="code")
    keeping.say(FLY, 2)
    [moved] = keeping.items().values()
    assert (moved.memory_id, moved.mode, moved.mode_source, sources(moved)) == (
        item.memory_id,
        "code",
        "caller",
        ["t1", "t2"],
    )
    assert keeping.get(said.memory_id).mode == "general"


def test_items_follow_a_mode_that_is_renamed(keeping: Keeping) -> None:
    keeping.say(FLY, 1)
    [item] = keeping.items().values()
    keeping.change("move", mode="general", to="notes")
    [there] = keeping.items().values()
    assert (there.mode, there.memory_id != item.memory_id) == ("notes", True)
    keeping.say(FLY, 1, offset=5)
    assert list(keeping.items().values()) == [there]


def test_a_forgotten_item_is_made_again_in_no_mode_and_its_turn_stays(keeping: Keeping) -> None:
    said = keeping.say(f"{FLY} {PLAIN}", 1)
    [item] = keeping.items().values()
    assert keeping.change("forget", memory_id=item.memory_id) == 1
    assert keeping.told(Learned)[0].memory == keeping.get(said.memory_id)
    assert keeping.get(said.memory_id).items == ()
    keeping.say(f"{FLY} {PLAIN}", 1)
    keeping.say(FLY, 1, offset=2)
    keeping.change("move", memory_id=said.memory_id, to="code")
    keeping.say(FLY, 3, scope={"user_id": "u1", "project_id": "p2"})
    assert [one.scope["project_id"] for one in keeping.items().values()] == ["p2"], "another scope has its own"


def test_what_a_model_finds_is_added_and_an_empty_answer_takes_nothing_away(keeping: Keeping) -> None:
    said = keeping.say(f"{FLY} {PLAIN}", 1)
    lantern = FoundItem(kind="fact", text="There is a lantern.", quote="tells of the lantern", confidence=0.6)
    read = keeping.read(said, Understanding(items=(lantern,)))
    assert set(keeping.items()) == {FLY, "There is a lantern."}
    assert set(read.items) == {item.memory_id for item in keeping.items().values()}
    span = keeping.items()["There is a lantern."].evidence[0]
    assert read.text[span.start : span.end] == "tells of the lantern"
    keeping.read(said, None)
    assert set(keeping.items()) == {FLY, "There is a lantern."}
    keeping.read(said, Understanding())
    assert set(keeping.items()) == {FLY}


def test_a_models_items_go_with_their_turn_into_the_mode_that_it_says(keeping: Keeping) -> None:
    keeping.modes.declare(
        keeping.modes.get(HERE, "u1").visible(None)[0].model_copy(update={"name": "code"}),
        boundary="u1",
        partition=HERE,
    )
    said = keeping.say(FLY, 1)
    keeping.read(said, Understanding(mode="code"))
    assert [item.mode for item in keeping.items().values()] == ["code"]


def test_what_a_model_says_of_aims_is_told_each_time(keeping: Keeping) -> None:
    said = keeping.say(PLAIN, 1)
    aims = IntentionUpdate(goals=("ship it",))
    keeping.read(said, Understanding(intention=aims))
    assert [event.update for event in keeping.told(Learned)] == [aims]
    assert keeping.say(FLY, 1, offset=2).reading.aims is None, "another text, another answer"


@pytest.mark.parametrize("text", ["It works now, thanks!", "I finished the report."])
def test_a_turn_that_says_something_is_done_is_told_though_it_has_no_items(keeping: Keeping, text: str) -> None:
    said = keeping.say(text, 1)
    assert keeping.told(Learned) == [Learned(memory_id=said.memory_id, scope=said.scope, memory=said)]


def test_more_turns_than_are_kept_leave_the_latest(keeping: Keeping) -> None:
    turns = [keeping.say(FLY, number % 60, offset=number, turn_id=f"n{number}") for number in range(40)]
    [item] = keeping.items().values()
    assert sources(item) == [f"n{number}" for number in range(8, 40)]
    for one in turns:
        keeping.change("forget", memory_id=one.memory_id)
    assert keeping.items() == {}


def merged(keeping: Keeping) -> tuple[Memory, Memory, Memory]:
    """A turn whose item a consolidation has merged into that of another turn: the turn, its item, the other."""
    said = keeping.say("I am allergic to nuts.", 1)
    keeping.say("I am allergic to peanuts.", 2)
    items = keeping.items()
    into, hidden = items["I am allergic to peanuts."], items["I am allergic to nuts."]
    supports = (*known(hidden).supports, *known(into).supports)
    keeping.write(into.model_copy(update={"item": known(into).model_copy(update={"supports": supports})}))
    keeping.write(hidden.model_copy(update={"superseded_by": into.memory_id, "superseded_in": "run"}))
    keeping.write(said.model_copy(update={"items": (hidden.memory_id, into.memory_id)}))
    return said, hidden, keeping.get(into.memory_id)


def test_what_a_consolidation_merged_gets_what_is_said_of_either(keeping: Keeping) -> None:
    said, hidden, into = merged(keeping)
    assert keeping.say("I am allergic to nuts.", 5).items == (into.memory_id,)
    assert keeping.read(said, Understanding()).items == (into.memory_id, hidden.memory_id)
    assert sources(keeping.get(into.memory_id)) == ["t1", "t2", "t5"]
    assert sources(keeping.get(hidden.memory_id)) == ["t1"]


def test_an_edit_takes_its_evidence_back_from_what_was_merged(keeping: Keeping) -> None:
    said, hidden, into = merged(keeping)
    keeping.say(PLAIN, 1, offset=7)
    assert keeping.memories.get(HERE, hidden.memory_id) is None
    assert sources(keeping.get(into.memory_id)) == ["t2"]
    assert keeping.get(said.memory_id).items == ()


def test_an_edit_into_what_was_merged_keeps_its_evidence_there(keeping: Keeping) -> None:
    _, hidden, into = merged(keeping)
    keeping.say("I am allergic to peanuts.", 1, offset=7)
    assert keeping.memories.get(HERE, hidden.memory_id) is None
    assert sources(keeping.get(into.memory_id)) == ["t1", "t2"]


def test_a_forgotten_item_takes_what_was_merged_into_it_along(keeping: Keeping) -> None:
    _, _, into = merged(keeping)
    assert keeping.change("forget", memory_id=into.memory_id) == 2
    assert keeping.items() == {}
    keeping.say("I am allergic to nuts.", 1)
    assert keeping.items() == {}


def test_what_was_removed_and_not_told_of_is_found_by_its_words(keeping: Keeping) -> None:
    keeping.say(FLY, 1)
    [item] = keeping.items().values()
    keeping.words.commit(HERE)
    keeping.say(PLAIN, 1, offset=2)
    keeping.words.open(HERE)  # What was not committed is gone.
    told = [event for event in removed_but_found(keeping.memories, keeping.words, HERE) if event is not None]
    assert [event.memory_id for event in told] == [item.memory_id]
