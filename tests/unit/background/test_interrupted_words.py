"""What a killed worker was writing is completed once what it was handling is handled."""

from pathlib import Path

import pytest

from agents.rules.index.lexical_document import LexicalDocument
from schemas.state.memories import Memory
from streams.flow.support.lexical_commit import LexicalCommit
from tests.harnesses.worker import HERE, TOPICS, WorkerHarness


class Killed(WorkerHarness):
    """A worker that was killed when records were ahead of their words, and the one after it."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.hidden = self.say("violin", 0)
        self.write(self.hidden.model_copy(update={"superseded_by": "a summary"}))
        self.forgotten = self.say("cello", 1)
        self.words.set_applied(HERE, TOPICS.turns, 2)
        self.words.commit(HERE)
        self.write(self.hidden)
        self.memories.forget(HERE, self.forgotten.memory_id)
        self.words.remove(HERE, self.forgotten.memory_id)
        self.words.open(HERE)
        self.interrupted = self.interrupted_words()
        self.commit = LexicalCommit(self.words, self.meters, self.interrupted)

    def write(self, memory: Memory) -> None:
        self.memories.put(HERE, memory)
        self.words.put(HERE, LexicalDocument(memory))

    def found(self) -> tuple[int, list[bool]]:
        """Return the number of memories with words, and whether something supersedes them."""
        columns = self.words.memory_columns(HERE, "u1")
        return columns.documents, [bool(columns.columns.superseded[number]) for number in columns.number_of.values()]


@pytest.fixture
def worker(tmp_path: Path) -> Killed:
    return Killed(tmp_path)


async def test_words_are_written_when_all_records_are_handled_again(worker: Killed) -> None:
    worker.interrupted.arrive(HERE, {TOPICS.turns: 2, TOPICS.changes: 3})
    for applied in (1, 2):
        worker.words.set_applied(HERE, TOPICS.changes, applied)
        await worker.commit.commit([HERE])
        # How a command that is delivered again finds what it has not finished.
        assert worker.found() == (2, [True, False])
    worker.words.set_applied(HERE, TOPICS.changes, 3)
    await worker.commit.commit([HERE])
    assert worker.found() == (1, [False])
    assert [forgotten_event.memory_id for forgotten_event in worker.forgotten_events()] == [worker.forgotten.memory_id]
    assert [memory.memory_id for memory in worker.remembered_memories()] == [worker.hidden.memory_id]
    assert list(worker.words.interrupted(HERE)) == []
    worker.words.open(HERE)
    assert worker.found() == (1, [False])


async def test_words_wait_for_their_time_over_another_kill(worker: Killed) -> None:
    worker.interrupted.arrive(HERE, {TOPICS.changes: 3})
    worker.say("drum", 2)
    await worker.commit.commit([HERE])
    worker.words.open(HERE)
    assert {worker.hidden.memory_id, worker.forgotten.memory_id} < set(worker.words.interrupted(HERE))


async def test_without_interrupted_words_nothing_is_written(worker: Killed) -> None:
    await worker.commit.commit([HERE])
    assert worker.found() == (2, [True, False])


@pytest.mark.parametrize("is_finished", [False, True])
async def test_memory_of_a_record_is_named_until_the_record_is_finished(tmp_path: Path, *, is_finished: bool) -> None:
    worker = WorkerHarness(tmp_path)
    number = worker.ctx.commit.begin(HERE)
    memory = worker.say("violin", 0)
    if is_finished:
        worker.ctx.commit.finish(HERE, number)
    for offset in range(1, 4):
        await worker.ctx.commit.commit([HERE])
        worker.say(f"cello {offset}", offset)
    worker.words.open(HERE)
    assert (memory.memory_id in worker.words.interrupted(HERE)) is not is_finished
