"""Preparation of newly assigned partitions."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from agents.rules.index.lexical_document import LexicalDocument
from streams.flow.background import arrival
from streams.flow.background.arrival import PartitionPreparer
from tests.builders.stores import remember_over
from tests.builders.turns import PARTITIONS
from tests.fakes.tables.memories import FakeMemories
from tests.harnesses.worker import HERE, TOPICS, WorkerHarness

ELSEWHERE = (HERE + 1) % PARTITIONS


class ArrivalHarness(WorkerHarness):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.committed: dict[tuple[str, int], int] = {}
        self.arrival = PartitionPreparer(self._committed, self.ctx)

    async def _committed(self) -> Mapping[tuple[str, int], int]:
        return self.committed

    def lose_words(self, partition: int = HERE) -> None:
        """Lose the index of a partition whose database has offsets, as with another version."""
        self.words.open(partition)
        self.words.databases.at(partition).set_offset("changelog", 1)
        self.words.commit(partition)
        self.words.drop(partition)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[ArrivalHarness]:
    worker = ArrivalHarness(tmp_path)
    yield worker
    worker.words.close()


async def test_new_worker_without_memories_starts_at_offset_zero(worker: ArrivalHarness) -> None:
    await worker.arrival.prepare({0, 1})
    assert worker.progress.next_offset(0) == 0


async def test_partition_that_has_not_arrived_has_no_offset(worker: ArrivalHarness) -> None:
    await worker.arrival.prepare({0, 1})
    assert worker.progress.next_offset(2) is None


async def test_complete_index_is_kept(worker: ArrivalHarness) -> None:
    worker.say("violin", 4)
    worker.words.commit(HERE)
    worker.memories = FakeMemories()
    await worker.arrival.prepare({HERE})
    assert worker.count_postings("violin") == 1, "a rebuilt index would be empty"


async def test_complete_index_is_kept_where_the_group_is_ahead(worker: ArrivalHarness) -> None:
    """Recovery has brought words and rows to the same offset of the changelog."""
    worker.words.put(HERE, LexicalDocument(worker.say("violin", 4).model_copy(update={"text": "trumpet"})))
    worker.words.commit(HERE)
    worker.committed = {(TOPICS.turns, HERE): 9}
    await worker.arrival.prepare({HERE})
    assert worker.count_postings("trumpet") == 1


async def test_uncommitted_words_are_lost(worker: ArrivalHarness) -> None:
    worker.words.commit(HERE)
    worker.say("violin", 4)
    await worker.arrival.prepare({HERE})
    assert worker.count_postings("violin") == 0


LOGS = [TOPICS.turns, TOPICS.embedded, TOPICS.understood, TOPICS.changes, TOPICS.consolidated]


@pytest.mark.parametrize("topic", LOGS)
@pytest.mark.parametrize(("here", "of_the_group"), [(9, 5), (5, 9)], ids=["database ahead", "group ahead"])
async def test_applied_offset_is_the_larger_one(
    worker: ArrivalHarness, topic: str, here: int, of_the_group: int
) -> None:
    worker.ctx.commit.set_applied(HERE, topic, here)
    worker.words.commit(HERE)
    worker.committed = {(topic, HERE): of_the_group}
    await worker.arrival.prepare({HERE})
    assert worker.applied(topic) == 9


@pytest.mark.parametrize(("here", "of_the_group"), [(9, 5), (5, 9)], ids=["database ahead", "group ahead"])
async def test_progress_starts_at_the_larger_offset(worker: ArrivalHarness, here: int, of_the_group: int) -> None:
    worker.ctx.commit.set_applied(HERE, TOPICS.turns, here)
    worker.words.commit(HERE)
    worker.committed = {(TOPICS.turns, HERE): of_the_group}
    await worker.arrival.prepare({HERE})
    assert worker.progress.next_offset(HERE) == 9


async def test_offsets_are_those_of_their_partition(worker: ArrivalHarness) -> None:
    worker.committed = {(TOPICS.turns, HERE): 5, (TOPICS.turns, ELSEWHERE): 7}
    await worker.arrival.prepare({HERE, ELSEWHERE})
    assert worker.progress.next_offset(HERE) == 5
    assert worker.progress.next_offset(ELSEWHERE) == 7


async def test_incomplete_index_is_rebuilt_from_the_table(worker: ArrivalHarness) -> None:
    worker.say("violin", 4)
    worker.lose_words()
    await worker.arrival.prepare({HERE})
    assert worker.count_postings("violin") == 1


async def test_rebuilt_index_is_complete(worker: ArrivalHarness) -> None:
    worker.say("violin", 4)
    worker.lose_words()
    await worker.arrival.prepare({HERE})
    assert worker.words.is_complete(HERE)


async def test_rebuilt_index_is_durable(worker: ArrivalHarness) -> None:
    worker.say("violin", 4)
    worker.lose_words()
    await worker.arrival.prepare({HERE})
    worker.words.open(HERE)
    assert worker.count_postings("violin") == 1


async def test_rebuilt_index_has_nothing_that_the_table_lacks(worker: ArrivalHarness) -> None:
    worker.lose_words()
    worker.words.open(HERE)
    ghost = worker.say("ghost", 5).model_copy(update={"memory_id": "not in the table", "text": "phantom"})
    worker.words.put(HERE, LexicalDocument(ghost))
    worker.words.commit(HERE)
    await worker.arrival.prepare({HERE})
    assert worker.count_postings("phantom") == 0


async def test_index_without_a_memory_is_rebuilt_empty(worker: ArrivalHarness) -> None:
    worker.say("violin", 4)
    worker.lose_words(ELSEWHERE)
    await worker.arrival.prepare({ELSEWHERE})
    assert worker.words.memory_columns(ELSEWHERE, "u1").documents == 0


async def test_complete_index_is_kept_beside_an_incomplete_one(worker: ArrivalHarness) -> None:
    worker.say("violin", 4)
    worker.words.commit(HERE)
    worker.lose_words(ELSEWHERE)
    rebuilt: list[int] = []
    rows = worker.memories.rows

    def note(partition: int) -> Iterator[bytes]:
        rebuilt.append(partition)
        return rows(partition)

    worker.memories.rows = note  # type: ignore[method-assign]
    await worker.arrival.prepare({HERE, ELSEWHERE})
    assert set(rebuilt) == {ELSEWHERE}


async def test_pending_understanding_survives_a_rebuilt_index(worker: ArrivalHarness) -> None:
    worker.remember = remember_over(worker.stores.at(HERE), worker.embedders, asks_model=True)
    memory = worker.say("violin", 4)
    worker.lose_words()
    await worker.arrival.prepare({HERE})
    assert list(worker.words.awaiting_understanding(HERE)) == [memory.memory_id]


async def test_rebuilt_index_has_no_forgotten_memories(worker: ArrivalHarness) -> None:
    forgotten = worker.say("cello", 5)
    worker.memories.forget(HERE, forgotten.memory_id)
    worker.lose_words()
    await worker.arrival.prepare({HERE})
    assert worker.count_postings("cello") == 0


async def test_nothing_is_published_on_assignment(worker: ArrivalHarness) -> None:
    worker.say("violin", 4)
    worker.lose_words()
    await worker.arrival.prepare({HERE})
    assert worker.publisher.sent == []


class BuildingHarness(ArrivalHarness):
    """A worker with three memories, an incomplete index, and a builder of another process."""

    def __init__(self, directory: Path, *, succeeds: bool) -> None:
        super().__init__(directory)
        self._succeeds = succeeds
        for offset, text in enumerate(["violin", "cello", "drum"]):
            self.say(text, offset)
        self.lose_words()
        self.built: list[int] = []
        """The number of rows of each call."""
        self.was_open = False
        self.arrival = PartitionPreparer(self._committed, self.ctx, build=self._build)

    async def _build(self, partition: int, rows: Iterable[bytes]) -> bool:
        self.was_open |= self.words.is_open(partition)
        self.built.append(len(list(rows)))
        return self._succeeds


@pytest.fixture(params=[True, False], ids=["built", "failed"])
def building(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[BuildingHarness]:
    monkeypatch.setattr(arrival, "MIN_BUILT_APART", 2)
    building = BuildingHarness(tmp_path, succeeds=request.param)
    yield building
    building.words.close()


async def test_large_index_is_built_elsewhere_of_all_rows(building: BuildingHarness) -> None:
    await building.arrival.prepare({HERE})
    assert building.built == [3]


async def test_index_is_not_open_while_it_is_built_elsewhere(building: BuildingHarness) -> None:
    await building.arrival.prepare({HERE})
    assert not building.was_open


async def test_index_is_built_here_if_it_is_not_elsewhere(building: BuildingHarness) -> None:
    await building.arrival.prepare({HERE})
    assert building.count_postings("violin") == (not building._succeeds)


async def test_small_index_is_built_here(building: BuildingHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "MIN_BUILT_APART", 4)
    await building.arrival.prepare({HERE})
    assert building.built == []
