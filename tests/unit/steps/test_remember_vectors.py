"""`RememberEvents`: a reported vector counts if this run wrote it or a lookup finds it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.internal.events import Embedded, Remembered
from schemas.state.memories import Memory
from streams.flow.steps.step import CommittingStep
from tests.harnesses.remember import RememberSteps
from tests.harnesses.worker import HERE, TOPICS, change, event_record, run_step


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[RememberSteps]:
    worker = RememberSteps(tmp_path)
    yield worker
    worker.words.close()


class RecordedLookups:
    """Answers whether a vector is in the index, and records the lookups."""

    def __init__(self, *, is_there: bool) -> None:
        self.is_there = is_there
        self.asked: list[str] = []

    async def __call__(self, event: Embedded) -> bool:
        """Record the memory and answer."""
        self.asked.append(event.memory_id)
        return self.is_there


async def embedded_record(worker: RememberSteps, memory: Memory, **fields: Any) -> Embedded:
    """Return the report of a memory's written vector."""
    [said] = await worker.embed.write([await worker.embed.encode(Remembered(memory=memory), HERE)])
    return said.model_copy(update=fields)


async def process_reports(worker: RememberSteps, looked: RecordedLookups, *events: Embedded) -> None:
    """Process reports of vectors."""
    step = CommittingStep(worker.events_step(looked), worker.ctx.commit)
    await run_step(step, *(event_record(event, TOPICS.embedded, offset) for offset, event in enumerate(events)))


async def test_vector_of_this_run_needs_no_lookup(worker: RememberSteps) -> None:
    memory, looked = worker.say("violin", 0, mode="code"), RecordedLookups(is_there=False)
    await process_reports(worker, looked, await embedded_record(worker, memory, run=worker.ctx.worker_run_id))
    assert worker.stored(memory).embedding.status == "ready"
    assert looked.asked == []
    assert worker.remembered_memories() == []


@pytest.mark.parametrize("another", ["another run", None])
async def test_existing_vector_of_another_run_marks_ready(worker: RememberSteps, another: str | None) -> None:
    memory, looked = worker.say("violin", 0, mode="code"), RecordedLookups(is_there=True)
    await process_reports(worker, looked, await embedded_record(worker, memory, run=another))
    assert (worker.stored(memory).embedding.status, looked.asked) == ("ready", [memory.memory_id])
    assert worker.remembered_memories() == []


@pytest.mark.parametrize("another", ["another run", None])
async def test_missing_vector_of_another_run_is_made_again(worker: RememberSteps, another: str | None) -> None:
    memory = worker.say("violin", 0, mode="code")
    await process_reports(worker, RecordedLookups(is_there=False), await embedded_record(worker, memory, run=another))
    assert worker.stored(memory).embedding.status == "pending"
    assert worker.remembered_memories() == [worker.stored(memory)]


async def test_report_of_another_run_that_changes_nothing_is_believed(worker: RememberSteps) -> None:
    gone, moved, edited, failed = [worker.say(text, offset, mode="code") for offset, text in enumerate("abcd")]
    events = [await embedded_record(worker, one) for one in (gone, moved, edited, failed)]
    events[3] = events[3].model_copy(update={"status": "failed", "error": "a reason"})
    for made in (change("forget", memory_id=gone.memory_id), change("move", memory_id=moved.memory_id, to="journal")):
        await worker.apply(made)
    worker.say("e", 4, mode="code", turn_id="c")
    worker.publisher.sent.clear()
    looked = RecordedLookups(is_there=False)
    await process_reports(worker, looked, *events)
    assert looked.asked == []
    assert [one.memory_id for one in worker.forgotten_events()] == [gone.memory_id]
    assert [one.text for one in worker.remembered_memories()] == ["b", "e"]
    assert worker.stored(failed).embedding.status == "failed"
