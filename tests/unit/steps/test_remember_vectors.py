"""`RememberEvents`: a reported vector counts if this run wrote it or a lookup finds it."""

from typing import Any

import pytest

from schemas.internal.events import Embedded, Remembered
from schemas.state.memories import Memory
from streams.flow.steps.step import CommittingStep
from tests.harnesses.remember_steps import RememberSteps
from tests.harnesses.worker import HERE, TOPICS, change, event_record, run_step


class RecordedLookups:
    def __init__(self, *, is_there: bool) -> None:
        self.is_there = is_there
        self.asked: list[str] = []

    async def __call__(self, event: Embedded, partition: int) -> bool:
        self.asked.append(event.memory_id)
        return self.is_there


async def report_of(worker: RememberSteps, memory: Memory, **fields: Any) -> Embedded:
    [report] = await worker.embed.write([await worker.embed.encode(Remembered(memory=memory), HERE)])
    return report.model_copy(update=fields)


async def process_reports(worker: RememberSteps, lookups: RecordedLookups, *events: Embedded) -> None:
    step = CommittingStep(worker.events_step(lookups), worker.ctx.commit)
    await run_step(step, *(event_record(event, TOPICS.embedded, offset) for offset, event in enumerate(events)))


async def test_vector_of_this_run_needs_no_lookup(worker: RememberSteps) -> None:
    memory, lookups = worker.say("violin", 0, mode="code"), RecordedLookups(is_there=False)
    await process_reports(worker, lookups, await report_of(worker, memory, run=worker.ctx.worker_run_id))
    assert worker.stored(memory).embedding.status == "ready"
    assert lookups.asked == []
    assert worker.remembered_memories() == []


@pytest.mark.parametrize("another", ["another run", None])
async def test_existing_vector_of_another_run_marks_ready(worker: RememberSteps, another: str | None) -> None:
    memory, lookups = worker.say("violin", 0, mode="code"), RecordedLookups(is_there=True)
    await process_reports(worker, lookups, await report_of(worker, memory, run=another))
    assert worker.stored(memory).embedding.status == "ready"
    assert lookups.asked == [memory.memory_id]
    assert worker.remembered_memories() == []


@pytest.mark.parametrize("another", ["another run", None])
async def test_missing_vector_of_another_run_is_made_again(worker: RememberSteps, another: str | None) -> None:
    memory = worker.say("violin", 0, mode="code")
    await process_reports(worker, RecordedLookups(is_there=False), await report_of(worker, memory, run=another))
    assert worker.stored(memory).embedding.status == "pending"
    assert worker.remembered_memories() == [worker.stored(memory)]


async def test_report_of_another_run_that_changes_nothing_is_believed(worker: RememberSteps) -> None:
    forgotten, moved, edited, failed = [worker.say(text, offset, mode="code") for offset, text in enumerate("abcd")]
    events = [await report_of(worker, each) for each in (forgotten, moved, edited, failed)]
    events[3] = events[3].model_copy(update={"status": "failed", "error": "a reason"})
    for requested in (
        change("forget", memory_id=forgotten.memory_id),
        change("move", memory_id=moved.memory_id, to="journal"),
    ):
        await worker.apply(requested)
    worker.say("e", 4, mode="code", turn_id="c")
    worker.publisher.sent.clear()
    lookups = RecordedLookups(is_there=False)
    await process_reports(worker, lookups, *events)
    assert lookups.asked == []
    assert [event.memory_id for event in worker.forgotten_events()] == [forgotten.memory_id]
    assert [memory.text for memory in worker.remembered_memories()] == ["b", "e"]
    assert worker.stored(failed).embedding.status == "failed"
