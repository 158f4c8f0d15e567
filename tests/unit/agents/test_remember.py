"""The keeper of memories: turns and the indexer's news in, records and events out."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest

from agents.remember import Accepted, Remember
from schemas.events import Embedded, Remembered
from schemas.failures import Rejected, Unavailable
from schemas.memories import Memory
from streams.adapters.words.sqlite_words import SqliteWords
from tests.fake_memories import FakeMemories
from tests.made_turns import record, turn

PARTITION = record().partition
NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)


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
        self.memories = FakeMemories()
        self.words = words
        self.keeper = Remember(self.memories, words)

    def tell(self, text: str, offset: int, *, mode: str | None = None, turn_id: str | None = "t") -> Accepted:
        """A turn, as the record at this offset."""
        said = turn(text, turn_id=turn_id, mode=mode)
        return self.keeper.turn(said, record(offset=offset))

    def embedded(
        self, of: Accepted, status: Literal["ready", "failed", "stale"] = "ready", space: str = "s1"
    ) -> Remembered | None:
        """What the indexer says of the vector of an event's memory."""
        assert of.event is not None
        memory = of.event.memory
        said = Embedded(
            memory_id=memory.memory_id,
            content_hash=memory.content_hash,
            status=status,
            space=space,
            at=NOW,
            error="a reason" if status == "failed" else None,
        )
        return self.keeper.embedded(said, PARTITION)

    def memory(self, of: Accepted) -> Memory:
        """The record as it stands."""
        memory = self.memories.get(PARTITION, of.result.memory_id)
        assert memory is not None
        return memory

    def finds(self, term: str) -> int:
        """How many memories have this word."""
        [found] = self.words.postings(PARTITION, "u1", [term])
        return len(found.numbers)

    def ready(self, space: str = "s1") -> int:
        """How many memories count as embedded in the word index."""
        return self.words.count_ready(PARTITION, space)


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
    assert (embedding.status, embedding.space, embedding.embedded_at, embedding.error) == ("ready", "s1", NOW, None)
    assert kept.ready() == 1


def test_a_vector_that_could_not_be_made_is_failed_with_the_reason(kept: Kept) -> None:
    told = kept.tell("violin", 3)
    assert kept.embedded(told, "failed") is None
    assert (kept.memory(told).embedding.status, kept.memory(told).embedding.error) == ("failed", "a reason")
    assert (kept.ready(), kept.finds("violin")) == (0, 1)


def test_a_vector_that_is_missing_is_asked_for_again(kept: Kept) -> None:
    told = kept.tell("violin", 3)
    kept.embedded(told)
    again = kept.embedded(told, "stale")
    assert again == Remembered(memory=kept.memory(told))
    assert (kept.memory(told).embedding.status, kept.ready()) == ("pending", 0)


def test_the_vector_of_a_replaced_text_does_not_make_the_new_one_ready(kept: Kept) -> None:
    old = kept.tell("violin", 3)
    new = kept.tell("cello", 4)
    assert kept.embedded(old) is None, "the new text's vector is on its way"
    assert kept.memory(new).embedding.status == "pending"
    assert kept.embedded(new) is None
    assert kept.memory(new).embedding.status == "ready"


def test_an_old_vector_that_was_written_over_the_new_one_makes_it_be_asked_for_again(kept: Kept) -> None:
    old = kept.tell("violin", 3)
    new = kept.tell("cello", 4)
    kept.embedded(new)
    again = kept.embedded(old)
    assert again is not None
    assert again.memory.text == "cello"
    assert (kept.memory(new).embedding.status, kept.ready()) == ("pending", 0)


def test_news_of_a_memory_that_is_not_here_changes_nothing(kept: Kept) -> None:
    told = kept.tell("violin", 3)
    kept.memories = FakeMemories()
    keeper = Remember(kept.memories, kept.words)
    said = Embedded(memory_id=told.result.memory_id, content_hash="h", status="ready", space="s", at=NOW)
    assert keeper.embedded(said, PARTITION) is None
    assert list(kept.memories.all()) == []


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
