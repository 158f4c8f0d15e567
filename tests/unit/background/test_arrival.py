"""Preparation of newly assigned partitions."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from agents.rules.index.lexical_document import LexicalDocument
from schemas.failures import Unavailable
from schemas.state.memories import VectorLocation
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.background import arrival
from streams.flow.background.arrival import PartitionPreparer
from tests.builders.stores import remember_over
from tests.builders.turns import PARTITIONS
from tests.fakes.tables.memories import FakeMemories
from tests.harnesses.worker import HERE, TOPICS, WorkerHarness, change


class ArrivalHarness(WorkerHarness):
    """A worker with the committed offsets of its group."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.words.drop(HERE)
        self.committed: dict[tuple[str, int], int] = {}
        self.changes = 0
        self.unknown = False
        self.arrival = PartitionPreparer(self._committed, self._log_end, self.ctx)

    async def _committed(self) -> Mapping[tuple[str, int], int]:
        return self.committed

    async def _log_end(self, topic: str, _partition: int) -> int:
        if self.unknown:
            raise Unavailable("Kafka does not tell")
        return self.changes if topic == TOPICS.changes else 0

    def kill_behind_a_restored_source(self) -> None:
        """Leave a record ahead of its words, which were not committed."""
        memory = self.say("violin", 4)
        self.words.put(HERE, LexicalDocument(memory.model_copy(update={"superseded_by": "a summary"})))
        self.words.set_applied(HERE, TOPICS.turns, 5)
        self.words.commit(HERE)
        self.words.put(HERE, LexicalDocument(memory))
        self.words.open(HERE)

    def is_hidden(self) -> bool:
        """True if the words say that something supersedes the memory."""
        return bool(self.words.memory_columns(HERE, "u1").columns.superseded.any())


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[ArrivalHarness]:
    worker = ArrivalHarness(tmp_path)
    yield worker
    worker.words.close()


async def test_new_worker_without_memories_starts_at_offset_zero(worker: ArrivalHarness) -> None:
    await worker.arrival.prepare({0, 1})
    assert worker.progress.next_offset(0) == 0
    assert worker.progress.next_offset(2) is None
    assert worker.words.memory_columns(1, "u1").documents == 0


async def test_current_lexical_index_is_unchanged(worker: ArrivalHarness) -> None:
    worker.words.open(HERE)
    worker.say("violin", 4)
    worker.words.commit(HERE)
    worker.memories = FakeMemories()
    worker.committed = {(TOPICS.turns, HERE): 5}
    await worker.arrival.prepare({HERE})
    assert worker.count_postings("violin") == 1, "a rebuilt index would be empty"
    assert worker.progress.next_offset(HERE) == 5


async def test_lexical_index_ahead_of_the_commit_is_unchanged(worker: ArrivalHarness) -> None:
    worker.words.open(HERE)
    worker.say("violin", 4)
    worker.words.commit(HERE)
    worker.committed = {(TOPICS.turns, HERE): 2}
    await worker.arrival.prepare({HERE})
    assert worker.count_postings("violin") == 1
    assert worker.progress.next_offset(HERE) == 5


@pytest.mark.parametrize("topic", [TOPICS.turns, TOPICS.embedded, TOPICS.understood, TOPICS.changes])
async def test_outdated_lexical_index_is_rebuilt_from_the_table(worker: ArrivalHarness, topic: str) -> None:
    worker.words.open(HERE)
    worker.say("violin", 4)
    forgotten = worker.say("cello", 5)
    worker.words.commit(HERE)
    worker.words.remove(HERE, forgotten.memory_id)
    worker.words.commit(HERE)
    worker.words.put(HERE, LexicalDocument(forgotten.model_copy(update={"text": "trumpet"})))
    worker.words.commit(HERE)
    worker.committed = {(TOPICS.turns, HERE): 6, (TOPICS.embedded, HERE): 0, (topic, HERE): 9}
    await worker.arrival.prepare({HERE})
    assert worker.count_postings("violin") == 1
    assert worker.count_postings("cello") == 1
    assert worker.count_postings("trumpet") == 0
    assert worker.words.applied(HERE)[topic] == 9


async def test_new_disk_gets_only_its_partitions_lexical_indexes(worker: ArrivalHarness) -> None:
    elsewhere = (HERE + 1) % PARTITIONS
    for partition in (HERE, elsewhere):
        worker.words.open(partition)
    worker.say("violin", 4)
    for partition in (HERE, elsewhere):
        worker.words.drop(partition)
    worker.committed = {(TOPICS.turns, HERE): 5, (TOPICS.turns, elsewhere): 7}
    await worker.arrival.prepare({HERE, elsewhere})
    assert worker.count_postings("violin") == 1
    assert worker.words.memory_columns(elsewhere, "u1").documents == 0
    assert worker.progress.next_offset(HERE) == 5
    assert worker.progress.next_offset(elsewhere) == 7


async def test_rebuilt_lexical_index_equals_the_table(worker: ArrivalHarness) -> None:
    worker.words.open(HERE)
    worker.say("violin", 4)
    worker.words.put(
        HERE,
        LexicalDocument(worker.say("ghost", 5).model_copy(update={"memory_id": "not in the table", "text": "phantom"})),
    )
    worker.words.commit(HERE)
    worker.committed = {(TOPICS.turns, HERE): 9}
    await worker.arrival.prepare({HERE})
    assert worker.count_postings("violin") == 1
    assert worker.count_postings("phantom") == 0


async def test_table_may_hold_partitions_that_were_here_before(worker: ArrivalHarness) -> None:
    worker.words.open(HERE)
    worker.say("violin", 4)
    worker.words.drop(HERE)
    elsewhere = (HERE + 1) % PARTITIONS
    worker.committed = {(TOPICS.turns, elsewhere): 3}
    await worker.arrival.prepare({elsewhere})
    assert worker.words.memory_columns(elsewhere, "u1").documents == 0


async def test_rebuilt_lexical_index_is_kept(worker: ArrivalHarness) -> None:
    worker.words.open(HERE)
    worker.say("violin", 4)
    worker.words.drop(HERE)
    worker.committed = {(TOPICS.turns, HERE): 5}
    await worker.arrival.prepare({HERE})
    worker.words.open(HERE)
    assert worker.count_postings("violin") == 1
    assert worker.words.applied(HERE)[TOPICS.turns] == 5


async def test_pending_understanding_survives_a_rebuilt_lexical_index(tmp_path: Path) -> None:
    worker = ArrivalHarness(tmp_path)
    worker.words.open(HERE)
    worker.remember = remember_over(worker.stores.at(HERE), worker.embedders, asks_model=True)
    memory = worker.say("violin", 4)
    worker.words.drop(HERE)
    worker.committed = {(TOPICS.turns, HERE): 5}
    await worker.arrival.prepare({HERE})
    assert list(worker.words.awaiting_understanding(HERE)) == [memory.memory_id]
    worker.words.close()


async def test_rebuilt_lexical_index_has_no_forgotten_memories(worker: ArrivalHarness) -> None:
    worker.words.open(HERE)
    worker.say("violin", 4)
    forgotten = worker.say("cello", 5)
    worker.memories.forget(HERE, forgotten.memory_id)
    worker.words.drop(HERE)
    worker.committed = {(TOPICS.changes, HERE): 1}
    await worker.arrival.prepare({HERE})
    assert worker.count_postings("violin") == 1
    assert worker.count_postings("cello") == 0


@pytest.fixture
async def interrupted(worker: ArrivalHarness) -> ArrivalHarness:
    """A worker without lexical files, killed in the middle of a move and of a forget.

    A third is ready, and a fourth never had a vector.
    """
    worker.declare("code", "tiny32")
    worker.words.open(HERE)
    violin, cello, _ = [
        await worker.say_embedded(text, offset) for offset, text in enumerate(["violin", "cello", "drum"])
    ]
    worker.say("trumpet", 3)
    for command in (change("move", memory_id=violin.memory_id, to="code"), change("forget", memory_id=cello.memory_id)):
        assert [step for step in worker.remember.changed(command) if step[1]]
    worker.words.drop(HERE)
    worker.changes = 2
    worker.committed = {(TOPICS.turns, HERE): 4, (TOPICS.embedded, HERE): 3, (TOPICS.changes, HERE): 1}
    return worker


async def test_untold_command_is_sent_when_the_index_does_not_know_it(interrupted: ArrivalHarness) -> None:
    await interrupted.arrival.prepare({HERE})
    place = VectorLocation(mode="general", space=interrupted.space("general", "general").fingerprint.digest)
    assert [(memory.text, memory.mode) for memory in interrupted.remembered_memories()] == [("violin", "code")]
    assert [forgotten_event.places for forgotten_event in interrupted.forgotten_events()] == [(place,)]
    assert {out.partition for out in interrupted.publisher.sent} == {HERE}


async def test_finished_commands_publish_nothing_on_assignment(interrupted: ArrivalHarness) -> None:
    interrupted.changes = 1
    await interrupted.arrival.prepare({HERE})
    assert interrupted.publisher.sent == []


async def test_unknown_command_progress_counts_as_unfinished(interrupted: ArrivalHarness) -> None:
    interrupted.unknown = True
    await interrupted.arrival.prepare({HERE})
    assert len(interrupted.publisher.sent) == 2


async def test_lexical_commit_waits_for_recovered_events(interrupted: ArrivalHarness, tmp_path: Path) -> None:
    interrupted.publisher.hold()
    arriving = asyncio.create_task(interrupted.arrival.prepare({HERE}))
    while len(interrupted.publisher.sent) < 2:
        await asyncio.sleep(0)
    assert applied_on_disk(tmp_path) == {}, "a restart publishes it again"
    interrupted.publisher.release()
    await arriving
    assert applied_on_disk(tmp_path)[TOPICS.turns] == 4


def applied_on_disk(directory: Path) -> Mapping[str, int]:
    """Return the applied offset in the lexical index of a restarted worker."""
    words = SqliteLexicalIndex(directory)
    words.open(HERE)
    applied = words.applied(HERE)
    words.close()
    return applied


@pytest.mark.parametrize("is_built", [True, False])
async def test_large_index_is_built_elsewhere_if_that_succeeds(
    worker: ArrivalHarness, monkeypatch: pytest.MonkeyPatch, *, is_built: bool
) -> None:
    monkeypatch.setattr(arrival, "MIN_BUILT_APART", 2)
    worker.words.open(HERE)
    for offset, text in enumerate(["violin", "cello", "drum"]):
        worker.say(text, offset)
    built: list[int] = []

    async def build(partition: int, rows: Iterable[bytes]) -> bool:
        with pytest.raises(KeyError):
            worker.words.applied(partition)
        built.append(len(list(rows)))
        return is_built

    worker.committed = {(TOPICS.turns, HERE): 9}
    committed, log_end = worker.arrival._committed, worker.arrival._log_end
    await PartitionPreparer(committed, log_end, worker.ctx, build=build).prepare({HERE})
    assert built == [3]
    assert worker.count_postings("violin") == (not is_built)
    assert worker.progress.next_offset(HERE) == 9


async def test_interrupted_words_are_written_at_once_if_no_record_is_left(worker: ArrivalHarness) -> None:
    worker.words.open(HERE)
    worker.kill_behind_a_restored_source()
    await worker.arrival.prepare({HERE})
    assert not worker.is_hidden()


async def test_interrupted_words_wait_for_a_change_that_is_delivered_again(worker: ArrivalHarness) -> None:
    worker.words.open(HERE)
    worker.kill_behind_a_restored_source()
    worker.changes = 1
    await worker.arrival.prepare({HERE})
    assert worker.is_hidden()
    for topic in (TOPICS.turns, TOPICS.embedded, TOPICS.understood, TOPICS.changes, TOPICS.consolidated):
        worker.words.set_applied(HERE, topic, 5)
    await worker.ctx.commit.commit([HERE])
    assert not worker.is_hidden()
