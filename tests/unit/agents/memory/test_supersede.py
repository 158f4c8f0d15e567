"""One memory in place of several: all of them or none, once, and taken back where a kill left it half done."""

from collections.abc import Sequence

import pytest

from agents.memory.claims import ResolveClaims
from agents.memory.items import KeepItems, MemoryEvent
from agents.memory.recovery import find_removed_but_indexed, repair_superseded_flags
from agents.memory.supersede import Supersede
from agents.memory.write_memory import WriteMemory
from agents.rules.consolidation.distillation import distilled_memory, source_of
from agents.rules.index.lexical_document import LexicalDocument
from agents.rules.items.extracting import extract_by_rules
from schemas.consolidation import Distilled, ItemsMerged
from schemas.events import Forgotten, Learned, Remembered
from schemas.memories import Memory
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.items import item_of
from tests.builders.memories import START, embedded_in, made
from tests.builders.stores import fake_stores
from tests.fakes.memories import FakeMemories

HERE = 0
SAME = ("I like it.", "I do like it.")
CONTRADICTING = ("The deploy target is fly.io now.", "No, the new deploy target is AWS, not fly.io.")


class Keeping:
    """Three turns, and what is distilled from them."""

    def __init__(self, words: SqliteLexicalIndex) -> None:
        self.memories, self.words = FakeMemories(), words
        self.stores = stores = fake_stores(words, self.memories).at(HERE)
        self.write = write = WriteMemory(stores.memories, stores.words)
        claims = ResolveClaims(stores.memories, stores.claims, write)
        self.items = KeepItems(stores.memories, stores.words, claims, write)
        self.supersede = Supersede(stores.memories, stores.words, self.items, write)
        self.turns = [made(f"Watered the tomatoes, day {n}.", n, content_hash=f"h{n}") for n in range(3)]
        for turn in self.turns:
            self.keep(turn)
        sources = [source_of(turn) for turn in self.turns]
        memory = distilled_memory(
            self.turns[0].scope, "ana", "general", sources, "Tomatoes.", confidence=0.9, run="0-3", at=START
        )
        hashes = {turn.memory_id: turn.content_hash for turn in self.turns}
        self.event = Distilled(run="0-3", memory=memory, sources=hashes)

    def keep(self, memory: Memory) -> None:
        self.write(memory)

    def apply(self) -> Sequence[MemoryEvent]:
        return self.supersede.apply_distilled(self.event)

    def now(self, memory: Memory) -> Memory | None:
        return self.memories.get(HERE, memory.memory_id)

    @property
    def served(self) -> set[str]:
        """The texts of what stands for itself; words and records agree."""
        roster = self.words.memory_columns(HERE, "ana")
        known = {one for one, number in roster.number_of.items() if not roster.columns.superseded[number]}
        assert known == {one.memory_id for one in self.memories.all() if one.superseded_by is None}
        return {one.text for one in self.memories.all() if one.superseded_by is None}


@pytest.fixture
def keeping(words: SqliteLexicalIndex) -> Keeping:
    return Keeping(words)


def test_a_distilled_memory_takes_the_place_of_its_turns(keeping: Keeping) -> None:
    assert keeping.supersede.state_of(keeping.event) == "due"
    [follows] = keeping.apply()
    assert isinstance(follows, Remembered)
    assert follows.memory == keeping.event.memory
    assert keeping.served == {"Tomatoes."}
    assert {one.superseded_in for one in keeping.memories.all() if one.superseded_by} == {"0-3"}
    assert keeping.supersede.state_of(keeping.event) == "done"


def test_the_same_event_again_changes_nothing(keeping: Keeping) -> None:
    keeping.apply()
    ready = keeping.event.memory.model_copy(update={"embedding": embedded_in("s1")})
    keeping.keep(ready)
    before = list(keeping.memories.all())
    assert keeping.apply() == []
    assert list(keeping.memories.all()) == before


@pytest.mark.parametrize(
    "change",
    [
        {"content_hash": "edited"},
        {"mode": "code"},
        {"superseded_by": "another"},
        {"scope": {"user_id": "ana", "project_id": "p2"}},
    ],
)
def test_where_one_turn_is_not_what_it_was_nothing_is_done(keeping: Keeping, change: dict[str, object]) -> None:
    keeping.keep(keeping.turns[1].model_copy(update=change))
    before = list(keeping.memories.all())
    assert keeping.apply() == []
    assert list(keeping.memories.all()) == before
    assert keeping.supersede.state_of(keeping.event) == "refused"


def test_where_one_turn_is_forgotten_nothing_is_done(keeping: Keeping) -> None:
    keeping.words.remove(HERE, keeping.turns[1].memory_id)
    keeping.memories.forget(HERE, keeping.turns[1].memory_id)
    assert keeping.apply() == []
    assert keeping.served == {keeping.turns[0].text, keeping.turns[2].text}


def test_what_a_user_has_forgotten_is_not_made_again(keeping: Keeping) -> None:
    keeping.memories.forget(HERE, keeping.event.memory.memory_id)
    assert keeping.apply() == []
    assert keeping.served == {turn.text for turn in keeping.turns}


@pytest.mark.parametrize("written", [0, 1, 2])
def test_what_a_kill_cut_off_is_done_when_the_event_comes_again(keeping: Keeping, written: int) -> None:
    keeping.keep(keeping.event.memory)
    for turn in keeping.turns[:written]:
        keeping.keep(turn.model_copy(update={"superseded_by": keeping.event.memory.memory_id, "superseded_in": "0-3"}))
    assert keeping.supersede.state_of(keeping.event) == "due"
    keeping.apply()
    assert keeping.served == {"Tomatoes."}


def test_what_a_kill_left_half_done_is_taken_back_where_a_turn_is_gone(keeping: Keeping) -> None:
    half = keeping.event.memory.model_copy(update={"embedding": embedded_in("s1")})
    keeping.keep(half)
    keeping.keep(keeping.turns[0].model_copy(update={"superseded_by": half.memory_id, "superseded_in": "0-3"}))
    keeping.words.remove(HERE, keeping.turns[2].memory_id)
    keeping.memories.forget(HERE, keeping.turns[2].memory_id)
    follows, learned = keeping.apply()
    assert isinstance(follows, Forgotten)
    assert isinstance(learned, Learned)
    assert follows.memory_id == half.memory_id
    assert len(follows.places) == 1
    assert keeping.served == {turn.text for turn in keeping.turns[:2]}
    assert keeping.now(half) is None
    assert not keeping.memories.is_forgotten(HERE, half.memory_id)


def test_turns_whose_words_a_kill_has_lost_are_hidden_when_the_event_comes_again(keeping: Keeping) -> None:
    keeping.apply()
    for turn in keeping.turns:
        keeping.words.put(HERE, LexicalDocument(turn))
    keeping.apply()
    assert keeping.served == {"Tomatoes."}


def test_a_merge_whose_words_and_events_a_kill_has_lost_is_told_when_it_comes_again(keeping: Keeping) -> None:
    older, item = (item_of(turn, text=text) for turn, text in zip(keeping.turns, SAME, strict=False))
    merged = item.model_copy(update={"superseded_by": older.memory_id, "superseded_in": "0-3"})
    for memory in (older, merged):
        keeping.keep(memory)
    keeping.words.put(HERE, LexicalDocument(item))
    event = ItemsMerged(run="0-3", memory_id=item.memory_id, content_hash=item.content_hash, into=older.memory_id)
    told = [one.memory.memory_id for one in keeping.supersede.apply_merge(event) if isinstance(one, Remembered)]
    assert told == [older.memory_id, item.memory_id]
    roster = keeping.words.memory_columns(HERE, item.index_name)
    hidden = {one for one, number in roster.number_of.items() if roster.columns.superseded[number]}
    assert hidden == {item.memory_id}
    assert keeping.supersede.apply_merge(event.model_copy(update={"run": "0-4"})) == []


def test_a_contradicted_item_whose_words_a_kill_has_lost_is_hidden_when_its_turn_comes_again(keeping: Keeping) -> None:
    items = keeping.items
    earlier, later = (made(text, number) for number, text in enumerate(CONTRADICTING))
    items.replace_items(earlier, extract_by_rules(earlier))
    [old] = items.items_of(keeping.now(earlier) or earlier)
    items.replace_items(later, extract_by_rules(later))
    keeping.words.put(HERE, LexicalDocument(old))
    items.refresh_items(keeping.now(later) or later, extract_by_rules(later))
    roster = keeping.words.memory_columns(HERE, old.index_name)
    assert roster.columns.superseded[roster.number_of[old.memory_id]]


def test_what_was_taken_back_before_a_kill_is_told_when_its_turn_comes_again(keeping: Keeping) -> None:
    keeping.apply()
    ready = keeping.event.memory.model_copy(update={"embedding": embedded_in("s1")})
    keeping.keep(ready)
    edited = keeping.turns[1]
    told = keeping.supersede.release(keeping.now(edited))
    assert [len(one.places) for one in told if isinstance(one, Forgotten)] == [1]
    assert keeping.supersede.release(keeping.now(edited)) == told
    keeping.keep(edited)
    assert keeping.served == {turn.text for turn in keeping.turns}
    assert keeping.supersede.release(keeping.now(edited)) == []


@pytest.mark.parametrize("written", [0, 1])
def test_a_kill_while_it_is_taken_back_leaves_nothing_that_stands_for_an_edited_turn(
    keeping: Keeping, written: int
) -> None:
    keeping.apply()
    for turn in keeping.turns[:written]:
        keeping.keep(turn)
    edited = keeping.turns[2]
    told = keeping.supersede.release(keeping.now(edited))
    assert [type(one) for one in told] == [Forgotten, Learned]
    assert {one.memory_id for one in told if not isinstance(one, Remembered)} == {keeping.event.memory.memory_id}
    assert keeping.now(keeping.event.memory) is None
    keeping.keep(edited)
    assert keeping.served == {turn.text for turn in keeping.turns}


def test_what_was_half_done_and_taken_back_is_told_when_its_event_comes_again(keeping: Keeping) -> None:
    keeping.apply()
    keeping.keep(keeping.turns[2].model_copy(update={"content_hash": "edited"}))
    told = keeping.apply()
    assert [one.memory_id for one in told if isinstance(one, Forgotten)] == [keeping.event.memory.memory_id]
    assert keeping.apply() == told


def test_words_that_a_kill_has_set_back_are_served_as_the_records_have_it(keeping: Keeping) -> None:
    keeping.apply()
    keeping.words.commit(HERE)
    keeping.supersede.withdraw(keeping.event.memory, keeping.event.sources)
    keeping.words.open(HERE)  # What was not committed is gone.
    told = [one for one in find_removed_but_indexed(keeping.stores.memories, keeping.stores.words) if one is not None]
    assert [one.memory_id for one in told] == [keeping.event.memory.memory_id]
    for one in told:
        keeping.words.remove(HERE, one.memory_id)
    list(repair_superseded_flags(keeping.stores.memories, keeping.stores.words))
    assert keeping.served == {turn.text for turn in keeping.turns}
