"""The keeper of memories: turns and the indexer's news in, records and events out."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest

from agents.mode_spaces import ModeSpaces
from agents.remember import Accepted, Remember
from schemas.events import Embedded, Forgotten, Remembered
from schemas.failures import Rejected, Unavailable
from schemas.interaction import Interaction
from schemas.memories import Memory, Place
from schemas.modes import GENERAL, GENERAL_MODE, Mode
from streams.adapters.words.sqlite_words import SqliteWords
from tests.fake_claims import FakeClaims
from tests.fake_embedders import FakeEmbedders
from tests.fake_memories import FakeMemories
from tests.fake_modes import FakeModes
from tests.made_turns import record, turn

PARTITION = record().partition
NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)
CODE = Mode(name="code", embedder="tiny32", embedding_dim=32, decay="slow")

Status = Literal["ready", "failed", "waiting", "stale"]
Follows = Remembered | Forgotten | None


class BreakableWords(SqliteWords):
    """The word index, on a disk that can be full."""

    full = False

    def put(self, partition: int, memory: Memory) -> None:
        """Write, if there is room."""
        if self.full:
            raise Unavailable("the disk is full")
        super().put(partition, memory)


class Kept:
    """The keeper with what it keeps."""

    def __init__(self, words: BreakableWords) -> None:
        self.memories, self.modes, self.embedders = FakeMemories(), FakeModes(), FakeEmbedders()
        self.words = words
        self.spaces = ModeSpaces(self.modes, self.embedders)
        self.keeper = Remember(self.memories, words, self.modes, self.spaces, FakeClaims())

    def tell(self, text: str, offset: int, *, mode: str | None = None, turn_id: str | None = "t") -> Accepted:
        """A turn, as the record at this offset."""
        said = turn(text, turn_id=turn_id, mode=mode)
        return self.keeper.turn(said, record(offset=offset))

    def embedded(self, of: Accepted, status: Status = "ready", space: str | None = None, **changes: Any) -> Follows:
        """What the indexer says of the vector of an event's memory; in the space of its mode unless told otherwise."""
        assert of.event is not None
        memory = of.event.memory
        said = Embedded(
            memory_id=memory.memory_id,
            content_hash=memory.content_hash,
            mode=memory.mode,
            status=status,
            space=None if status in ("stale", "waiting") else space or self.space(memory.mode),
            at=NOW,
            error="a reason" if status in ("failed", "waiting") else None,
        )
        return self.keeper.embedded(said.model_copy(update=changes), PARTITION)

    def space(self, mode: str = GENERAL) -> str:
        """The digest of the space of a mode, if its model were loaded."""
        found = self.modes.get(PARTITION, "u1").find(mode, "p1")
        assert found is not None
        return FakeEmbedders().of(found).fingerprint.digest

    def memory(self, of: Accepted) -> Memory:
        """The record as it stands."""
        memory = self.memories.get(PARTITION, of.result.memory_id)
        assert memory is not None
        return memory

    def finds(self, term: str) -> int:
        """How many memories have this word."""
        [found] = self.words.postings(PARTITION, "u1", [term])
        return len(found.numbers)

    def ready(self) -> dict[Place, int]:
        """How many memories count as embedded in the word index, by place."""
        return dict(self.words.ready_places(PARTITION))


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    words = BreakableWords(tmp_path)
    words.open(PARTITION)
    yield Kept(words)
    words.close()


def test_a_new_turn_is_kept_found_by_its_words_and_told(kept: Kept) -> None:
    told = kept.tell("violin", 3)
    assert (told.result.version, told.result.duplicate, told.result.turn_id) == (1, False, "t")
    assert (told.result.mode, told.result.mode_source) == ("general", "fallback")
    assert told.event == Remembered(memory=kept.memory(told))
    assert kept.memory(told).embedding.status == "pending"
    assert kept.finds("violin") == 1


def test_a_turn_without_id_gets_one_that_its_reply_names(kept: Kept) -> None:
    told = kept.tell("violin", 3, turn_id=None)
    assert told.result.turn_id.startswith("derived-")
    assert kept.tell("violin", 3, turn_id=None).result == told.result


def test_a_duplicate_changes_nothing_and_is_not_told(kept: Kept) -> None:
    before = kept.memory(kept.tell("violin", 3))
    again = kept.tell("violin", 4)
    assert (again.result.duplicate, again.result.version, again.event) == (True, 1, None)
    assert kept.memory(again) == before


def test_an_edit_replaces_the_text_and_its_words(kept: Kept) -> None:
    kept.tell("violin", 3)
    edited = kept.tell("cello", 4)
    assert (edited.result.version, edited.result.duplicate) == (2, False)
    assert edited.event is not None
    assert (kept.finds("violin"), kept.finds("cello")) == (0, 1)


def test_a_text_that_comes_back_stands_again_without_a_new_version(kept: Kept) -> None:
    first = kept.tell("violin", 3)
    kept.tell("cello", 4)
    back = kept.tell("violin", 5)
    assert (back.result.version, back.result.duplicate) == (2, False)
    assert (kept.memory(back).text, kept.memory(back).current) == ("violin", 0)
    assert (kept.finds("violin"), kept.finds("cello")) == (1, 0)
    assert first.event is not None
    assert back.event is not None
    assert back.event.memory.content_hash == first.event.memory.content_hash


def test_a_record_that_a_killed_worker_had_kept_is_told_again_while_it_waits(kept: Kept) -> None:
    first = kept.tell("violin", 3)
    again = kept.tell("violin", 3)
    assert again == first
    assert not again.result.duplicate


def test_a_record_that_a_killed_worker_had_kept_is_indexed_again(kept: Kept) -> None:
    first = kept.tell("violin", 3)
    kept.words.remove(PARTITION, first.result.memory_id)
    kept.tell("violin", 3)
    assert kept.finds("violin") == 1


def test_a_text_that_was_replaced_does_not_come_back_when_a_killed_worker_gets_it_again(kept: Kept) -> None:
    kept.tell("the heron", 1)
    edited = kept.tell("the otter", 2)
    again = kept.tell("the heron", 1)
    assert (again.event, again.result.duplicate, again.result.version) == (None, False, 2)
    assert kept.memory(edited).text == "the otter"
    assert (kept.finds("heron"), kept.finds("otter")) == (0, 1)


def test_a_redelivery_of_what_is_embedded_asks_for_no_vector(kept: Kept) -> None:
    kept.embedded(kept.tell("violin", 3))
    again = kept.tell("violin", 3)
    assert again.event is None
    assert kept.memory(again).embedding.status == "ready"


def test_all_again_from_the_start_leaves_the_same_text_id_and_versions(kept: Kept) -> None:
    for _ in range(2):
        for offset, text in enumerate(["violin", "cello", "violin", "drum"]):
            last = kept.tell(text, offset)
    assert (last.result.version, kept.memory(last).text, kept.finds("drum")) == (3, "drum", 1)
    assert kept.words.roster(PARTITION, "u1").documents == 1


def test_a_new_turn_or_an_edit_in_a_mode_that_nobody_declared_is_refused_and_leaves_no_trace(kept: Kept) -> None:
    with pytest.raises(Rejected, match="unknown_mode"):
        kept.tell("violin", 3, mode="journal")
    assert list(kept.memories.all()) == []
    before = kept.memory(kept.tell("violin", 4))
    with pytest.raises(Rejected, match="unknown_mode"):
        kept.tell("cello", 5, mode="journal")
    assert list(kept.memories.all()) == [before]
    assert (kept.finds("violin"), kept.finds("cello")) == (1, 0)


def test_a_duplicate_stays_one_when_its_mode_is_gone(kept: Kept) -> None:
    kept.tell("violin", 3)
    assert kept.tell("violin", 4, mode="a-mode-of-the-past").result.duplicate


def test_a_vector_that_is_in_the_index_makes_its_memory_ready(kept: Kept) -> None:
    told = kept.tell("violin", 3)
    assert kept.embedded(told) is None
    embedding = kept.memory(told).embedding
    assert (embedding.status, embedding.space) == ("ready", kept.space())
    assert (embedding.embedded_at, embedding.error) == (NOW, None)
    assert kept.ready() == {Place(mode=GENERAL, space=kept.space()): 1}


def test_a_vector_that_could_not_be_made_is_failed_with_the_reason(kept: Kept) -> None:
    told = kept.tell("violin", 3)
    assert kept.embedded(told, "failed") is None
    assert (kept.memory(told).embedding.status, kept.memory(told).embedding.error) == ("failed", "a reason")
    assert (kept.ready(), kept.finds("violin")) == ({}, 1)


def test_a_vector_that_is_missing_is_asked_for_again(kept: Kept) -> None:
    told = kept.tell("violin", 3)
    kept.embedded(told)
    again = kept.embedded(told, "stale")
    assert again == Remembered(memory=kept.memory(told))
    assert (kept.memory(told).embedding.status, kept.ready()) == ("pending", {})


def test_the_vector_of_a_replaced_text_does_not_make_the_new_one_ready(kept: Kept) -> None:
    old = kept.tell("violin", 3)
    new = kept.tell("cello", 4)
    again = kept.embedded(old)
    assert again == Remembered(memory=kept.memory(new), strays=(Place(mode=GENERAL, space=kept.space()),))
    assert kept.memory(new).embedding.status == "pending"
    assert kept.embedded(new) is None
    assert kept.memory(new).embedding.status == "ready"


def test_an_old_vector_that_was_written_over_the_new_one_makes_it_be_asked_for_again(kept: Kept) -> None:
    old = kept.tell("violin", 3)
    new = kept.tell("cello", 4)
    kept.embedded(new)
    again = kept.embedded(old)
    assert isinstance(again, Remembered)
    assert again.memory.text == "cello"
    assert (kept.memory(new).embedding.status, kept.ready()) == ("pending", {})


def test_news_of_a_memory_that_is_not_here_changes_nothing(kept: Kept) -> None:
    told = kept.tell("violin", 3)
    memories = FakeMemories()
    kept.keeper = Remember(memories, kept.words, kept.modes, kept.spaces, FakeClaims())
    assert isinstance(kept.embedded(told), Forgotten), "a vector that no record knows of is removed"
    assert kept.embedded(told, "failed") is None
    assert list(memories.all()) == []


def test_the_same_turn_of_another_user_is_another_memory(kept: Kept) -> None:
    mine = kept.tell("violin", 3)
    theirs = kept.keeper.turn(turn("violin", turn_id="t", scope={"user_id": "u2"}), record(offset=4))
    assert theirs.result.memory_id != mine.result.memory_id
    assert not theirs.result.duplicate


def test_a_turn_that_a_full_disk_refused_is_new_when_it_is_tried_again(kept: Kept) -> None:
    kept.words.full = True
    with pytest.raises(Unavailable):
        kept.tell("violin", 3)
    kept.words.full = False
    told = kept.tell("violin", 3)
    assert (told.result.duplicate, kept.finds("violin")) == (False, 1)
    assert told.event is not None


def test_a_vector_is_asked_for_although_the_disk_was_full_the_first_time(kept: Kept) -> None:
    old = kept.tell("violin", 3)
    new = kept.tell("cello", 4)
    kept.embedded(new)
    kept.words.full = True
    with pytest.raises(Unavailable):
        kept.embedded(old)
    kept.words.full = False
    assert kept.embedded(old) is not None


def place(kept: Kept, mode: str = GENERAL) -> Place:
    return Place(mode=mode, space=kept.space(mode))


def test_a_turn_has_the_mode_that_its_caller_names_and_fades_as_that_does(kept: Kept) -> None:
    kept.modes.declare(CODE, boundary="u1", partition=PARTITION)
    told = kept.tell("violin", 3, mode="code")
    assert (told.result.mode, told.result.mode_source, kept.memory(told).decay) == ("code", "caller", "slow")
    kept.modes.put(PARTITION, "u1", kept.modes.get(PARTITION, "u1").model_copy(update={"user_default": "code"}))
    told = kept.tell("cello", 4, turn_id="other")
    assert (told.result.mode, told.result.mode_source) == ("code", "user_default")


def test_what_somebody_else_declared_is_not_declared(kept: Kept) -> None:
    kept.modes.declare(CODE, boundary="u2", partition=PARTITION)
    with pytest.raises(Rejected, match="unknown_mode"):
        kept.tell("violin", 3, mode="code")


def test_an_edit_keeps_its_mode_and_the_place_of_its_vector(kept: Kept) -> None:
    kept.modes.declare(CODE, boundary="u1", partition=PARTITION)
    kept.embedded(kept.tell("violin", 3, mode="code"))
    edited = kept.tell("cello", 4)
    assert (edited.result.mode, edited.result.mode_source) == ("code", "caller")
    assert (kept.memory(edited).embedding.status, kept.memory(edited).embedding.place) == (
        "pending",
        place(kept, "code"),
    )


def test_a_turn_that_a_model_is_to_read_says_so(kept: Kept) -> None:
    assert kept.memory(kept.tell("violin", 3)).reading.status == "rules"
    kept.keeper = Remember(kept.memories, kept.words, kept.modes, kept.spaces, FakeClaims(), asks_model=True)
    told = kept.tell("cello", 4)
    assert kept.memory(told).reading.status == "pending"
    assert list(kept.words.unread(PARTITION)) == [told.result.memory_id]


@pytest.mark.parametrize("text", ["violin", "cello"])
def test_a_turn_that_was_forgotten_stays_so_and_leaves_no_trace(kept: Kept, text: str) -> None:
    forgotten = kept.tell("violin", 3).result.memory_id
    kept.words.remove(PARTITION, forgotten)
    kept.memories.forget(PARTITION, forgotten)
    again = kept.tell(text, 4, mode="a-mode-of-the-past")
    assert (again.forgotten, again.event, again.result.memory_id) == (True, None, forgotten)
    assert (list(kept.memories.all()), kept.finds("violin"), kept.finds("cello")) == ([], 0, 0)


def test_the_vector_of_a_forgotten_memory_is_removed_when_it_comes_late(kept: Kept) -> None:
    told = kept.tell("violin", 3)
    kept.memories.forget(PARTITION, told.result.memory_id)
    assert kept.embedded(told) == Forgotten(memory_id=told.result.memory_id, places=(place(kept),))
    assert kept.embedded(told, "failed") is None


def test_a_vector_that_was_overtaken_by_a_move_is_removed(kept: Kept) -> None:
    kept.modes.declare(CODE, boundary="u1", partition=PARTITION)
    told = kept.tell("violin", 3)
    there = kept.memory(told).model_copy(update={"mode": "code"})
    kept.memories.put(PARTITION, there)
    assert kept.embedded(told) == Remembered(memory=there, strays=(place(kept),))
    assert kept.memory(told) == there
    assert kept.embedded(told, "failed") is None
    assert kept.embedded(told, "waiting") is None


def test_a_vector_of_yesterdays_embedder_is_removed_and_made_again(kept: Kept) -> None:
    told = kept.tell("violin", 3)
    again = kept.embedded(told, space="yesterdays")
    assert again == Remembered(memory=kept.memory(told), strays=(Place(mode=GENERAL, space="yesterdays"),))
    assert (kept.memory(told).embedding.status, kept.ready()) == ("pending", {})


def test_a_memory_waits_for_a_model_that_is_not_here_and_says_why(kept: Kept) -> None:
    told = kept.tell("violin", 3)
    kept.embedders.missing(GENERAL)
    assert kept.embedded(told, "waiting") is None
    assert (kept.memory(told).embedding.status, kept.memory(told).embedding.error) == ("pending", "a reason")


def test_a_model_that_came_while_its_absence_was_told_is_asked_at_once(kept: Kept) -> None:
    told = kept.tell("violin", 3)
    assert kept.embedded(told, "waiting") == Remembered(memory=kept.memory(told))
    assert kept.memory(told).embedding.error is None


def test_without_the_model_a_vector_that_was_on_its_way_counts(kept: Kept) -> None:
    told = kept.tell("violin", 3)
    kept.embedders.missing(GENERAL)
    assert kept.embedded(told) is None
    assert kept.memory(told).embedding.status == "ready"


@pytest.mark.parametrize("waits_by", ["stale", "waiting"])
def test_without_the_model_a_late_vector_is_not_taken_for_the_one_that_is_waited_for(kept: Kept, waits_by: str) -> None:
    told = kept.tell("violin", 3)
    kept.embedders.missing(GENERAL)
    change = {"status": "stale"} if waits_by == "stale" else {"error": "no model"}
    memory = kept.memory(told)
    waits = memory.model_copy(update={"embedding": memory.embedding.model_copy(update=change)})
    kept.memories.put(PARTITION, waits)
    yesterdays = Place(mode=GENERAL, space="yesterdays")
    assert kept.embedded(told, space="yesterdays") == Remembered(memory=waits, strays=(yesterdays,))
    assert kept.embedded(told, "failed", space="yesterdays") is None
    assert kept.memory(told) == waits


def test_a_vector_that_nobody_expected_has_the_one_before_removed(kept: Kept) -> None:
    told = kept.tell("violin", 3)
    kept.embedded(told)
    kept.modes.declare(GENERAL_MODE.model_copy(update={"embedder": "tiny32"}), boundary="u1", partition=PARTITION)
    before = kept.memory(told).embedding.place
    again = kept.embedded(told, space=kept.space())
    assert before is not None
    assert before.space != kept.space()
    assert again == Remembered(memory=kept.memory(told), strays=(before,))
    assert kept.memory(told).embedding.place == place(kept)


def test_what_a_turn_is_for_is_noted_with_its_vector(kept: Kept) -> None:
    told = kept.tell("violin", 3)
    read = Interaction(mode="LEARNING", confidence=0.8)
    kept.embedded(told, interaction=read)
    assert (kept.memory(told).reading.interaction, kept.memory(told).embedding.status) == (read, "ready")
    kept.embedded(told)
    assert kept.memory(told).reading.interaction == read


def test_what_a_replaced_text_was_for_is_not_noted(kept: Kept) -> None:
    old = kept.tell("violin", 3)
    kept.tell("cello", 4)
    kept.embedded(old, interaction=Interaction(mode="LEARNING", confidence=0.8))
    assert kept.memory(old).reading.interaction is None
