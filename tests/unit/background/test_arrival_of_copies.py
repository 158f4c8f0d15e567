"""Preparation of partitions whose lexical index was a copy of another worker's."""

from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import pytest

from schemas.failures import Unavailable
from streams.flow.background.arrival import PartitionPreparer
from streams.flow.background.word_copies import WordCopies
from streams.tables.memory_table import read_row
from tests.fakes.tables.memories import FakeMemories
from tests.harnesses.worker import HERE, TOPICS, WorkerHarness

OTHER_TOPICS = (TOPICS.embedded, TOPICS.understood, TOPICS.changes, TOPICS.consolidated)


class CopyHarness(WorkerHarness):
    """A worker whose lexical index may be a copy, with the rows of the changelog."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.words.drop(HERE)
        self.committed: dict[tuple[str, int], int] = {}
        self.copies = WordCopies(self.words, "changelog", read_row)
        self.rows: list[tuple[bytes, bytes | None]] = []
        self.away = False
        self.arrival = PartitionPreparer(self._committed, self._log_end, self.ctx, self.copies, self._rows_after)

    async def _committed(self) -> Mapping[tuple[str, int], int]:
        return self.committed

    async def _log_end(self, _topic: str, _partition: int) -> int:
        return 0

    async def _rows_after(self, _partition: int, position: int) -> AsyncIterator[tuple[dict[bytes, bytes | None], int]]:
        if self.away:
            raise Unavailable("Kafka does not answer")
        yield dict(self.rows[position:]), len(self.rows)

    def write(self, text: str, offset: int) -> None:
        """Remember a turn as its own worker does, with the row in the changelog and no words here."""
        self.words.open(HERE)
        memory = self.say(text, offset)
        self.words.drop(HERE)
        self.rows.append((memory.memory_id.encode(), memory.model_dump_json().encode()))
        self.committed = {(TOPICS.turns, HERE): offset + 1}


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[CopyHarness]:
    keeper = CopyHarness(tmp_path)
    yield keeper
    keeper.words.close()


async def test_copy_of_a_lexical_index_gets_what_it_lacks(keeper: CopyHarness) -> None:
    keeper.write("violin", 0)
    keeper.write("cello", 1)
    keeper.copies.open(HERE)
    await keeper.copies.apply(HERE, dict(keeper.rows[:1]), 1)
    keeper.memories = FakeMemories()
    await keeper.arrival.prepare({HERE})
    assert keeper.count_postings("violin") == 1
    assert keeper.count_postings("cello") == 1
    assert keeper.words.applied(HERE) == {TOPICS.turns: 2, "changelog": 2, **dict.fromkeys(OTHER_TOPICS, 0)}
    assert keeper.progress.next_offset(HERE) == 2


async def test_copy_that_is_served_is_not_written_before_it_is_prepared(keeper: CopyHarness) -> None:
    keeper.write("violin", 0)
    keeper.copies.open(HERE)
    keeper.copies.close(HERE)
    with pytest.raises(KeyError):
        keeper.say("cello", 1)


async def test_forgotten_memory_leaves_the_copy(keeper: CopyHarness) -> None:
    keeper.write("violin", 0)
    keeper.copies.open(HERE)
    await keeper.copies.apply(HERE, dict(keeper.rows), 1)
    keeper.rows.append((keeper.rows[0][0], b"forgotten"))
    keeper.memories.forget(HERE, keeper.rows[0][0].decode())
    await keeper.arrival.prepare({HERE})
    assert keeper.count_postings("violin") == 0


async def test_copy_whose_changelog_is_away_is_rebuilt_from_the_table(keeper: CopyHarness) -> None:
    keeper.write("violin", 0)
    keeper.copies.open(HERE)
    await keeper.copies.apply(HERE, {}, 0)
    keeper.away = True
    await keeper.arrival.prepare({HERE})
    assert keeper.count_postings("violin") == 1


async def test_partition_that_was_prepared_is_a_copy_up_to_its_table(keeper: CopyHarness) -> None:
    keeper.write("violin", 0)
    await keeper.arrival.prepare({HERE})
    keeper.copies.leave(HERE, 1)
    assert keeper.copies.position(HERE) == 1
    keeper.copies.serve(HERE, is_complete=False)
    keeper.copies.leave(HERE, 7)
    assert keeper.copies.position(HERE) == 1, "its words may lack what the table has"
