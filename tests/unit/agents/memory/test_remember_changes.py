"""`Remember`: changes by commands."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.memory.understood import DerivedEvent
from agents.memory.write_memory import finish
from agents.modes.vector_spaces import VectorSpaces
from agents.rules.index.lexical_document import LexicalDocument
from schemas.failures import Unavailable
from schemas.internal.changes import Change
from schemas.internal.events import Embedded, Forgotten, Remembered
from schemas.scopes import Scope
from schemas.state.memories import Memory
from schemas.state.modes import Mode, ModeDeclarations
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.memories import START
from tests.builders.stores import fake_stores, remember_over
from tests.builders.turns import record, turn
from tests.fakes.embedders import FakeEmbedders
from tests.fakes.tables.memories import FakeMemories
from tests.fakes.tables.modes import FakeModes

PARTITION = record().partition
CODE = Mode(name="code", embedder="tiny32", embedding_dim=32)
DIARY = Mode(name="diary", embedder="general", embedding_dim=384, decay="slow")


class LimitedIndex(SqliteLexicalIndex):
    """A lexical index whose disk is full after some writes."""

    room = 1000

    def put(self, partition: int, document: LexicalDocument) -> None:
        """Write, or raise Unavailable."""
        if self.room == 0:
            raise Unavailable("the disk is full")
        self.room -= 1
        super().put(partition, document)


class ChangesHarness:
    """`Remember` with embedded memories in two modes and two projects."""

    def __init__(self, words: LimitedIndex) -> None:
        self.memories, self.modes, self.words = FakeMemories(), FakeModes(), words
        stores = fake_stores(words, self.memories, self.modes).at(PARTITION)
        self.spaces = VectorSpaces(stores.modes, FakeEmbedders())
        self.agent = remember_over(stores, FakeEmbedders())
        self.modes.put(PARTITION, "u1", ModeDeclarations(modes=(CODE, DIARY)))
        self.code1, self.code2 = self.say("violin", "code", "p1", 1), self.say("cello", "code", "p2", 2)
        self.diary = self.say("drum", "diary", "p1", 3)
        self.general = self.say("flute", None, "p1", 4)

    def say(self, text: str, mode: str | None, project: str, offset: int) -> str:
        """Remember and embed a turn; return the memory's id."""
        scope = {"user_id": "u1", "project_id": project}
        message = turn(text, turn_id=text, mode=mode, scope=scope)
        event = finish(self.agent.turn(message, record(offset=offset))).event
        assert event is not None
        memory = event.memory
        space = self.spaces.of(memory)[1].fingerprint.digest
        ready = Embedded(
            memory_id=memory.memory_id,
            content_hash=memory.content_hash,
            mode=memory.mode,
            status="ready",
            space=space,
            at=START,
        )
        assert self.agent.embedded(ready) is None
        return memory.memory_id

    def memory(self, memory_id: str) -> Memory:
        memory = self.memories.get(PARTITION, memory_id)
        assert memory is not None
        return memory

    def modes_of(self, *memory_ids: str) -> list[str]:
        return [self.memory(memory_id).mode for memory_id in memory_ids]

    def change(self, by: str = "p1", /, **fields: Any) -> dict[str, DerivedEvent]:
        change = Change(scope=Scope(user_id="u1", project_id=by), **fields)
        return {memory.memory_id: event for memory, event in self.steps(change)}

    def steps(self, change: Change) -> Iterator[tuple[Memory, DerivedEvent]]:
        for memory, events in self.agent.changed(change):
            if memory is not None:
                yield memory, next((event for event in events if isinstance(event, Remembered | Forgotten)), None)


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[ChangesHarness]:
    words = LimitedIndex(tmp_path)
    words.open(PARTITION)
    yield ChangesHarness(words)
    words.close()


def test_rename_moves_exactly_the_modes_memories(harness: ChangesHarness) -> None:
    others = [harness.memory(memory_id) for memory_id in (harness.diary, harness.general)]
    events = harness.change(action="move", mode="code", to="diary")
    assert events == {
        memory_id: Remembered(memory=harness.memory(memory_id)) for memory_id in (harness.code1, harness.code2)
    }
    moved = harness.memory(harness.code1)
    assert moved.mode == "diary"
    assert moved.mode_source == "caller"
    assert moved.decay == "slow"
    assert moved.embedding.status == "pending"
    assert moved.embedding.place is not None
    assert moved.embedding.place.mode == "code"
    assert [harness.memory(memory_id) for memory_id in (harness.diary, harness.general)] == others
    assert harness.words.counts(PARTITION, "u1")["diary"] == {"pending": 2, "ready": 1}


def test_mode_source_stays_when_a_mode_is_renamed_or_deleted(harness: ChangesHarness) -> None:
    harness.change(action="move", mode="general", to="diary")
    assert harness.memory(harness.general).mode_source == "fallback"


def test_project_mode_changes_affect_its_project_only(harness: ChangesHarness) -> None:
    assert set(harness.change(action="move", mode="code", project="p2", to="diary")) == {harness.code2}
    assert harness.modes_of(harness.code1, harness.code2) == ["code", "diary"]


def test_users_mode_is_not_changed_in_projects_that_have_their_own(harness: ChangesHarness) -> None:
    assert set(harness.change(action="forget", mode="code", except_projects=("p2", "p3"))) == {harness.code1}


def test_completed_change_is_not_repeated(harness: ChangesHarness) -> None:
    harness.change(action="move", mode="code", to="diary")
    assert harness.change(action="move", mode="code", to="diary") == {}
    harness.change(action="forget", mode="diary")
    assert harness.change(action="forget", mode="diary") == {}


def test_moved_memory_has_the_callers_mode(harness: ChangesHarness) -> None:
    events = harness.change(action="move", memory_id=harness.general, to="code")
    moved = harness.memory(harness.general)
    assert events == {harness.general: Remembered(memory=moved)}
    assert moved.mode == "code"
    assert moved.mode_source == "caller"
    assert moved.embedding.status == "pending"


def test_memory_already_in_the_mode_is_pinned_and_keeps_its_vector(harness: ChangesHarness) -> None:
    before = harness.memory(harness.general)
    assert harness.change(action="move", memory_id=harness.general, to="general") == {harness.general: None}
    assert harness.memory(harness.general) == before.model_copy(update={"mode_source": "caller"})


@pytest.mark.parametrize(("user", "project"), [("u1", "p2"), ("u2", "p1")])
def test_memory_of_another_scope_is_not_changed(harness: ChangesHarness, user: str, project: str) -> None:
    change = Change(scope=Scope(user_id=user, project_id=project), action="move", memory_id=harness.general, to="code")
    assert list(harness.steps(change)) == []
    assert harness.modes_of(harness.general) == ["general"]


def test_forgotten_memories_leave_the_index_and_report_locations(harness: ChangesHarness) -> None:
    before = {memory_id: harness.memory(memory_id) for memory_id in (harness.code1, harness.code2)}
    events = harness.change(action="forget", mode="code")
    places = {memory_id: memory.embedding.place for memory_id, memory in before.items()}
    assert events == {
        memory_id: Forgotten(memory_id=memory_id, places=(place,)) for memory_id, place in places.items() if place
    }
    assert all(harness.memories.is_forgotten(PARTITION, memory_id) for memory_id in before)
    assert {memory.memory_id for memory in harness.memories.all()} == {harness.diary, harness.general}
    found = harness.words.postings(PARTITION, "u1", ["violin", "cello", "drum"])
    assert [len(postings.numbers) for postings in found] == [0, 0, 1]


def test_memory_without_vector_can_be_forgotten(harness: ChangesHarness) -> None:
    event = finish(harness.agent.turn(turn("oboe", turn_id="oboe"), record(offset=9))).event
    assert event is not None
    forgotten = Forgotten(memory_id=event.memory.memory_id, places=())
    assert harness.change(action="forget", memory_id=event.memory.memory_id) == {event.memory.memory_id: forgotten}


def test_forgetting_step_has_the_last_record(harness: ChangesHarness) -> None:
    before = harness.memory(harness.diary)
    change = Change(scope=Scope(user_id="u1", project_id="p1"), action="forget", memory_id=harness.diary)
    [(memory, _)] = harness.steps(change)
    assert memory == before


def test_stale_memories_wait_and_nothing_follows_at_once(harness: ChangesHarness) -> None:
    assert harness.change(action="stale", mode="code") == {harness.code1: None, harness.code2: None}
    assert set(harness.words.with_status(PARTITION, ("stale",))) == {harness.code1, harness.code2}
    assert harness.memory(harness.code1).embedding.place is not None
    assert harness.modes_of(harness.code1, harness.code2) == ["code", "code"]


def test_vector_in_flight_is_asked_for_again_where_another_space_is_due(harness: ChangesHarness) -> None:
    harness.change(action="move", memory_id=harness.general, to="code")
    events = harness.change(action="stale", mode="code")
    assert events[harness.general] == Remembered(memory=harness.memory(harness.general))


def test_other_records_are_handled_between_two_steps(harness: ChangesHarness) -> None:
    change = Change(scope=Scope(user_id="u1", project_id="p1"), action="move", mode="code", to="diary")
    steps = harness.steps(change)
    first, _ = next(steps)
    second = ({harness.code1, harness.code2} - {first.memory_id}).pop()
    harness.change(harness.memory(second).scope["project_id"], action="forget", memory_id=second)
    harness.say("oboe", "general", "p1", 9)
    assert list(steps) == []
    assert harness.memories.is_forgotten(PARTITION, second)


def test_change_resumes_after_a_full_disk(harness: ChangesHarness) -> None:
    harness.words.room = 1
    change = Change(scope=Scope(user_id="u1", project_id="p1"), action="move", mode="code", to="diary")
    steps = harness.steps(change)
    first, _ = next(steps)
    with pytest.raises(Unavailable):
        next(steps)
    harness.words.room = 10
    rest = [memory.memory_id for memory, _ in harness.steps(change)]
    assert {first.memory_id, *rest} == {harness.code1, harness.code2}
    assert len(rest) == 1
