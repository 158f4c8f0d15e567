"""Superseding several memories by one: completely, once, and rolled back after a kill in the middle."""

from collections.abc import Sequence

import pytest

from agents.memory.items import KeepItems, MemoryEvent, ResolveClaims
from agents.memory.supersede import Supersede
from agents.memory.write_memory import WriteMemory
from agents.rules.consolidation.distillation import distilled_memory, source_of
from schemas.internal.consolidation import Distilled, ItemsMerged
from schemas.internal.events import Forgotten, Learned, Remembered
from schemas.state.memories import Memory
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.items import item_of
from tests.builders.memories import START, embedded_in, made
from tests.builders.stores import fake_stores
from tests.fakes.tables.memories import FakeMemories

HERE = 0
SAME = ("I like it.", "I do like it.")


class SupersedeHarness:
    def __init__(self, words: SqliteLexicalIndex) -> None:
        self.memories, self.words = FakeMemories(), words
        self.stores = stores = fake_stores(words, self.memories).at(HERE)
        self.write = write = WriteMemory(stores.memories, stores.words)
        claims = ResolveClaims(stores.memories, stores.claims, write)
        self.items = KeepItems(stores.memories, stores.words, stores.modes, claims, write)
        self.supersede = Supersede(stores.memories, stores.words, self.items, write)
        self.turns = [made(f"Watered the tomatoes, day {n}.", n, content_hash=f"h{n}") for n in range(3)]
        for turn in self.turns:
            self.store(turn)
        sources = [source_of(turn) for turn in self.turns]
        memory = distilled_memory(
            self.turns[0].scope, "ana", "general", sources, "Tomatoes.", confidence=0.9, run="0-3", at=START
        )
        hashes = {turn.memory_id: turn.content_hash for turn in self.turns}
        self.event = Distilled(run="0-3", memory=memory, sources=hashes)

    def store(self, memory: Memory) -> None:
        self.write(memory)

    def apply(self) -> Sequence[MemoryEvent]:
        return self.supersede.apply_distilled(self.event)

    def now(self, memory: Memory) -> Memory | None:
        return self.memories.get(HERE, memory.memory_id)

    @property
    def current_texts(self) -> set[str]:
        """Return the texts of current memories, after checking the lexical index."""
        columns = self.words.memory_columns(HERE, "ana")
        known = {memory_id for memory_id, number in columns.number_of.items() if not columns.columns.superseded[number]}
        assert known == {memory.memory_id for memory in self.memories.all() if memory.superseded_by is None}
        return {memory.text for memory in self.memories.all() if memory.superseded_by is None}


@pytest.fixture
def harness(words: SqliteLexicalIndex) -> SupersedeHarness:
    return SupersedeHarness(words)


def test_summary_supersedes_its_turns(harness: SupersedeHarness) -> None:
    assert harness.supersede.state_of(harness.event) == "due"
    [event] = harness.apply()
    assert isinstance(event, Remembered)
    assert event.memory == harness.event.memory
    assert harness.current_texts == {"Tomatoes."}
    assert {memory.superseded_in for memory in harness.memories.all() if memory.superseded_by} == {"0-3"}
    assert harness.supersede.state_of(harness.event) == "done"


def test_same_event_again_changes_nothing(harness: SupersedeHarness) -> None:
    harness.apply()
    ready = harness.event.memory.model_copy(update={"embedding": embedded_in("s1")})
    harness.store(ready)
    before = list(harness.memories.all())
    assert harness.apply() == []
    assert list(harness.memories.all()) == before


@pytest.mark.parametrize(
    "change",
    [
        {"content_hash": "edited"},
        {"mode": "code"},
        {"superseded_by": "another"},
        {"scope": {"user_id": "ana", "project_id": "p2"}},
    ],
)
def test_edited_source_prevents_superseding(harness: SupersedeHarness, change: dict[str, object]) -> None:
    harness.store(harness.turns[1].model_copy(update=change))
    before = list(harness.memories.all())
    assert harness.apply() == []
    assert list(harness.memories.all()) == before
    assert harness.supersede.state_of(harness.event) == "refused"


def test_forgotten_source_prevents_superseding(harness: SupersedeHarness) -> None:
    harness.words.remove(HERE, harness.turns[1].memory_id)
    harness.memories.forget(HERE, harness.turns[1].memory_id)
    assert harness.apply() == []
    assert harness.current_texts == {harness.turns[0].text, harness.turns[2].text}


def test_forgotten_summary_is_not_recreated(harness: SupersedeHarness) -> None:
    harness.memories.forget(HERE, harness.event.memory.memory_id)
    assert harness.apply() == []
    assert harness.current_texts == {turn.text for turn in harness.turns}


@pytest.mark.parametrize("written", [0, 1, 2])
def test_redelivery_completes_an_interrupted_superseding(harness: SupersedeHarness, written: int) -> None:
    harness.store(harness.event.memory)
    for turn in harness.turns[:written]:
        harness.store(turn.model_copy(update={"superseded_by": harness.event.memory.memory_id, "superseded_in": "0-3"}))
    assert harness.supersede.state_of(harness.event) == "due"
    harness.apply()
    assert harness.current_texts == {"Tomatoes."}


def test_interrupted_superseding_is_undone_without_its_turn(harness: SupersedeHarness) -> None:
    half = harness.event.memory.model_copy(update={"embedding": embedded_in("s1")})
    harness.store(half)
    harness.store(harness.turns[0].model_copy(update={"superseded_by": half.memory_id, "superseded_in": "0-3"}))
    harness.words.remove(HERE, harness.turns[2].memory_id)
    harness.memories.forget(HERE, harness.turns[2].memory_id)
    event, learned = harness.apply()
    assert isinstance(event, Forgotten)
    assert isinstance(learned, Learned)
    assert event.memory_id == half.memory_id
    assert len(event.places) == 1
    assert harness.current_texts == {turn.text for turn in harness.turns[:2]}
    assert harness.now(half) is None
    assert not harness.memories.is_forgotten(HERE, half.memory_id)


def test_events_of_a_merge_are_published_on_redelivery(harness: SupersedeHarness) -> None:
    older, item = (item_of(turn, text=text) for turn, text in zip(harness.turns, SAME, strict=False))
    for memory in (older, item.model_copy(update={"superseded_by": older.memory_id, "superseded_in": "0-3"})):
        harness.store(memory)
    event = ItemsMerged(run="0-3", memory_id=item.memory_id, content_hash=item.content_hash, into=older.memory_id)
    events = [event.memory.memory_id for event in harness.supersede.apply_merge(event) if isinstance(event, Remembered)]
    assert events == [older.memory_id, item.memory_id]


def test_merge_of_another_run_publishes_nothing(harness: SupersedeHarness) -> None:
    older, item = (item_of(turn, text=text) for turn, text in zip(harness.turns, SAME, strict=False))
    for memory in (older, item.model_copy(update={"superseded_by": older.memory_id, "superseded_in": "0-3"})):
        harness.store(memory)
    event = ItemsMerged(run="0-4", memory_id=item.memory_id, content_hash=item.content_hash, into=older.memory_id)
    assert harness.supersede.apply_merge(event) == []


def test_withdrawal_before_a_kill_is_sent_on_redelivery(harness: SupersedeHarness) -> None:
    harness.apply()
    ready = harness.event.memory.model_copy(update={"embedding": embedded_in("s1")})
    harness.store(ready)
    edited = harness.turns[1]
    events = harness.supersede.release(harness.now(edited))
    assert [len(event.places) for event in events if isinstance(event, Forgotten)] == [1]
    assert harness.supersede.release(harness.now(edited)) == events
    harness.store(edited)
    assert harness.current_texts == {turn.text for turn in harness.turns}
    assert harness.supersede.release(harness.now(edited)) == []


@pytest.mark.parametrize("written", [0, 1])
def test_kill_during_withdrawal_leaves_nothing_of_an_edited_turn(harness: SupersedeHarness, written: int) -> None:
    harness.apply()
    for turn in harness.turns[:written]:
        harness.store(turn)
    edited = harness.turns[2]
    events = harness.supersede.release(harness.now(edited))
    assert [type(event) for event in events] == [Forgotten, Learned]
    assert {event.memory_id for event in events if not isinstance(event, Remembered)} == {
        harness.event.memory.memory_id
    }
    assert harness.now(harness.event.memory) is None
    harness.store(edited)
    assert harness.current_texts == {turn.text for turn in harness.turns}


def test_redelivery_publishes_an_interrupted_withdrawal(harness: SupersedeHarness) -> None:
    harness.apply()
    harness.store(harness.turns[2].model_copy(update={"content_hash": "edited"}))
    events = harness.apply()
    assert [event.memory_id for event in events if isinstance(event, Forgotten)] == [harness.event.memory.memory_id]
    assert harness.apply() == events
