"""The keeper of memories: what commands change in them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.memory.remember import DerivedEvent
from agents.modes.vector_spaces import VectorSpaces
from schemas.changes import Change
from schemas.events import Embedded, Forgotten, Remembered
from schemas.failures import Unavailable
from schemas.memories import Memory
from schemas.modes import Mode, ModeDeclarations
from schemas.scopes import Scope
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.memories import START
from tests.builders.stores import fake_stores, remember_over
from tests.builders.turns import record, turn
from tests.fakes.embedders import FakeEmbedders
from tests.fakes.memories import FakeMemories
from tests.fakes.modes import FakeModes

PARTITION = record().partition
CODE = Mode(name="code", embedder="tiny32", embedding_dim=32)
DIARY = Mode(name="diary", embedder="general", embedding_dim=384, decay="slow")


class BreakableWords(SqliteLexicalIndex):
    """The word index, on a disk that is full after so many writes."""

    room = 1000

    def put(self, partition: int, memory: Memory) -> None:
        """Write, if there is room."""
        if self.room == 0:
            raise Unavailable("the disk is full")
        self.room -= 1
        super().put(partition, memory)


class Keeping:
    """The keeper with memories in two modes and two projects, all with their vectors."""

    def __init__(self, words: BreakableWords) -> None:
        self.memories, self.modes, self.words = FakeMemories(), FakeModes(), words
        stores = fake_stores(words, self.memories, self.modes).at(PARTITION)
        self.spaces = VectorSpaces(stores.modes, FakeEmbedders())
        self.keeper = remember_over(stores, FakeEmbedders())
        self.modes.put(PARTITION, "u1", ModeDeclarations(modes=(CODE, DIARY)))
        self.code1, self.code2 = self.tell("violin", "code", "p1", 1), self.tell("cello", "code", "p2", 2)
        self.diary = self.tell("drum", "diary", "p1", 3)
        self.general = self.tell("flute", None, "p1", 4)

    def tell(self, text: str, mode: str | None, project: str, offset: int) -> str:
        """Remember a turn, with its vector; returns the memory's id."""
        scope = {"user_id": "u1", "project_id": project}
        said = turn(text, turn_id=text, mode=mode, scope=scope)
        event = self.keeper.turn(said, record(offset=offset)).event
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
        assert self.keeper.embedded(ready) is None
        return memory.memory_id

    def memory(self, memory_id: str) -> Memory:
        """The record as it stands."""
        memory = self.memories.get(PARTITION, memory_id)
        assert memory is not None
        return memory

    def modes_of(self, *memory_ids: str) -> list[str]:
        """The modes that memories are in."""
        return [self.memory(memory_id).mode for memory_id in memory_ids]

    def change(self, by: str = "p1", /, **fields: Any) -> dict[str, DerivedEvent]:
        """Carry out a change; what followed for which memory."""
        change = Change(scope=Scope(user_id="u1", project_id=by), **fields)
        return {memory.memory_id: event for memory, event in self.steps(change)}

    def steps(self, change: Change) -> Iterator[tuple[Memory, DerivedEvent]]:
        """Carry out a change; the memories that it changes, with what follows."""
        for memory, events in self.keeper.changed(change):
            if memory is not None:
                yield memory, next((one for one in events if isinstance(one, Remembered | Forgotten)), None)


@pytest.fixture
def keeping(tmp_path: Path) -> Iterator[Keeping]:
    words = BreakableWords(tmp_path)
    words.open(PARTITION)
    yield Keeping(words)
    words.close()


def test_memories_follow_their_mode_and_no_others_do(keeping: Keeping) -> None:
    others = [keeping.memory(one) for one in (keeping.diary, keeping.general)]
    followed = keeping.change(action="move", mode="code", to="diary")
    assert followed == {one: Remembered(memory=keeping.memory(one)) for one in (keeping.code1, keeping.code2)}
    moved = keeping.memory(keeping.code1)
    assert (moved.mode, moved.mode_source, moved.decay) == ("diary", "caller", "slow")
    assert (moved.embedding.status, moved.embedding.place and moved.embedding.place.mode) == ("pending", "code")
    assert [keeping.memory(one) for one in (keeping.diary, keeping.general)] == others
    assert keeping.words.counts(PARTITION, "u1")["diary"] == {"pending": 2, "ready": 1}


def test_who_decided_stays_when_a_mode_is_renamed_or_deleted(keeping: Keeping) -> None:
    keeping.change(action="move", mode="general", to="diary")
    assert keeping.memory(keeping.general).mode_source == "fallback"


def test_a_projects_mode_is_changed_in_its_project_alone(keeping: Keeping) -> None:
    assert set(keeping.change(action="move", mode="code", project="p2", to="diary")) == {keeping.code2}
    assert keeping.modes_of(keeping.code1, keeping.code2) == ["code", "diary"]


def test_a_users_mode_is_not_changed_in_projects_that_have_their_own(keeping: Keeping) -> None:
    assert set(keeping.change(action="forget", mode="code", except_projects=("p2", "p3"))) == {keeping.code1}


def test_a_change_that_was_made_is_not_made_again(keeping: Keeping) -> None:
    keeping.change(action="move", mode="code", to="diary")
    assert keeping.change(action="move", mode="code", to="diary") == {}
    keeping.change(action="forget", mode="diary")
    assert keeping.change(action="forget", mode="diary") == {}


def test_one_memory_is_put_into_a_mode_for_good(keeping: Keeping) -> None:
    followed = keeping.change(action="move", memory_id=keeping.general, to="code")
    there = keeping.memory(keeping.general)
    assert followed == {keeping.general: Remembered(memory=there)}
    assert (there.mode, there.mode_source, there.embedding.status) == ("code", "caller", "pending")


def test_one_memory_that_is_there_already_is_fixed_there_and_keeps_its_vector(keeping: Keeping) -> None:
    before = keeping.memory(keeping.general)
    assert keeping.change(action="move", memory_id=keeping.general, to="general") == {keeping.general: None}
    assert keeping.memory(keeping.general) == before.model_copy(update={"mode_source": "caller"})


@pytest.mark.parametrize(("user", "project"), [("u1", "p2"), ("u2", "p1")])
def test_one_memory_of_another_scope_is_left_alone(keeping: Keeping, user: str, project: str) -> None:
    change = Change(scope=Scope(user_id=user, project_id=project), action="move", memory_id=keeping.general, to="code")
    assert list(keeping.steps(change)) == []
    assert keeping.modes_of(keeping.general) == ["general"]


def test_forgotten_memories_are_gone_with_their_words_and_told_with_their_places(keeping: Keeping) -> None:
    before = {one: keeping.memory(one) for one in (keeping.code1, keeping.code2)}
    followed = keeping.change(action="forget", mode="code")
    places = {one: memory.embedding.place for one, memory in before.items()}
    assert followed == {one: Forgotten(memory_id=one, places=(place,)) for one, place in places.items() if place}
    assert all(keeping.memories.is_forgotten(PARTITION, one) for one in before)
    assert {memory.memory_id for memory in keeping.memories.all()} == {keeping.diary, keeping.general}
    found = keeping.words.postings(PARTITION, "u1", ["violin", "cello", "drum"])
    assert [len(postings.numbers) for postings in found] == [0, 0, 1]


def test_a_memory_is_forgotten_although_it_has_no_vector_yet(keeping: Keeping) -> None:
    event = keeping.keeper.turn(turn("oboe", turn_id="oboe"), record(offset=9)).event
    assert event is not None
    forgotten = Forgotten(memory_id=event.memory.memory_id, places=())
    assert keeping.change(action="forget", memory_id=event.memory.memory_id) == {event.memory.memory_id: forgotten}


def test_the_memory_is_given_as_it_was_where_it_is_forgotten(keeping: Keeping) -> None:
    before = keeping.memory(keeping.diary)
    change = Change(scope=Scope(user_id="u1", project_id="p1"), action="forget", memory_id=keeping.diary)
    [(memory, _)] = keeping.steps(change)
    assert memory == before


def test_stale_memories_wait_to_be_embedded_again_and_nothing_follows_at_once(keeping: Keeping) -> None:
    assert keeping.change(action="stale", mode="code") == {keeping.code1: None, keeping.code2: None}
    assert set(keeping.words.with_status(PARTITION, ("stale",))) == {keeping.code1, keeping.code2}
    assert keeping.memory(keeping.code1).embedding.place is not None
    assert keeping.modes_of(keeping.code1, keeping.code2) == ["code", "code"]


def test_others_may_be_handled_between_two_steps(keeping: Keeping) -> None:
    change = Change(scope=Scope(user_id="u1", project_id="p1"), action="move", mode="code", to="diary")
    steps = keeping.steps(change)
    first, _ = next(steps)
    second = ({keeping.code1, keeping.code2} - {first.memory_id}).pop()
    keeping.change(keeping.memory(second).scope["project_id"], action="forget", memory_id=second)
    keeping.tell("oboe", "general", "p1", 9)
    assert list(steps) == []
    assert keeping.memories.is_forgotten(PARTITION, second)


def test_a_change_that_a_full_disk_stopped_goes_on_where_it_was(keeping: Keeping) -> None:
    keeping.words.room = 1
    change = Change(scope=Scope(user_id="u1", project_id="p1"), action="move", mode="code", to="diary")
    steps = keeping.steps(change)
    first, _ = next(steps)
    with pytest.raises(Unavailable):
        next(steps)
    keeping.words.room = 10
    rest = [memory.memory_id for memory, _ in keeping.steps(change)]
    assert {first.memory_id, *rest} == {keeping.code1, keeping.code2}
    assert len(rest) == 1
