"""`EmbedRemembered`: one event reports vector and interaction mode, then the memory is queued for a model."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.internal.events import Forgotten, Remembered
from schemas.messages.records import Record
from schemas.state.memories import Memory
from tests.builders.turns import record
from tests.harnesses.worker import HERE, TOPICS, WorkerHarness, event_record, run_step

pytestmark = pytest.mark.usefixtures("short_backoff")


class EmbedSteps(WorkerHarness):
    """`EmbedRemembered` in a worker, and the memories that it queued for a model."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, asks_model=True)
        self.due: list[tuple[int, str]] = []
        self.declare("code", "tiny32")
        self.step = self.embed_step(lambda partition, memory: self.due.append((partition, memory.text)))


def remembered(memory: Memory, offset: int = 0) -> Record:
    return event_record(Remembered(memory=memory), TOPICS.remembered, offset)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[EmbedSteps]:
    worker = EmbedSteps(tmp_path)
    yield worker
    worker.words.close()


async def test_one_event_has_vector_and_interaction_mode(worker: EmbedSteps) -> None:
    memory = worker.say("The login fails and nobody knows why.", 0, mode="code")
    await run_step(worker.step, remembered(memory))
    [report] = worker.embedded_events()
    assert report.memory_id == memory.memory_id
    assert report.status == "ready"
    assert report.mode == "code"
    assert report.interaction is not None
    assert report.run == worker.ctx.worker_run_id
    assert await worker.index.count(worker.space("code", "tiny32"), HERE) == 1
    worker.remember.embedded(report)
    assert worker.stored(memory).reading.interaction == report.interaction


async def test_only_user_turns_are_classified_and_once(worker: EmbedSteps) -> None:
    theirs = worker.say("Let me see.", 0, role="assistant")
    known = worker.say("Fix the login.", 1)
    await run_step(worker.step, remembered(known))
    worker.remember.embedded(worker.embedded_events()[0])
    worker.publisher.sent.clear()
    await run_step(worker.step, remembered(theirs), remembered(worker.stored(known), 1))
    assert [report.interaction for report in worker.embedded_events()] == [None, None]


async def test_pending_memories_are_queued_after_the_report_and_only_they(worker: EmbedSteps) -> None:
    pending = worker.say("violin", 0)
    read = worker.say("cello", 1)
    read = read.model_copy(update={"reading": read.reading.model_copy(update={"status": "model"})})
    worker.publisher.hold()
    running = asyncio.create_task(run_step(worker.step, remembered(pending), remembered(read, 1)))
    for _ in range(200):
        await asyncio.sleep(0)
    assert worker.due == []
    worker.publisher.release()
    await running
    assert worker.due == [(HERE, "violin")]


async def test_duplicate_in_a_batch_is_reported_and_queued_once(worker: EmbedSteps) -> None:
    memory = worker.say("violin", 0)
    await run_step(worker.step, remembered(memory), remembered(memory, 1))
    assert len(worker.embedded_events()) == 1
    assert worker.due == [(HERE, "violin")]


async def test_memory_gets_its_vector_without_the_general_model(worker: EmbedSteps) -> None:
    worker.embedders.missing("general")
    memory = worker.say("violin", 0, mode="code")
    await run_step(worker.step, remembered(memory))
    assert [(report.status, report.interaction) for report in worker.embedded_events()] == [("ready", None)]


async def test_mode_without_model_delays_no_other(worker: EmbedSteps) -> None:
    worker.embedders.missing("tiny32")
    memories = [worker.say("violin", 0, mode="code"), worker.say("cello", 1)]
    await run_step(worker.step, *(remembered(memory, offset) for offset, memory in enumerate(memories)))
    reports = {event.memory_id: event for event in worker.embedded_events()}
    assert [reports[memory.memory_id].status for memory in memories] == ["waiting", "ready"]
    assert "tiny32" in (reports[memories[0].memory_id].error or "")
    assert reports[memories[0].memory_id].interaction is not None


@pytest.mark.parametrize("what", ["embedder", "vector index"])
async def test_unavailable_dependency_is_retried(worker: EmbedSteps, what: str) -> None:
    memory = worker.say("violin", 0)
    general = worker.embedders.model("general")
    general.outage = what == "embedder"
    if what == "vector index":
        worker.index.down()
    running = asyncio.create_task(run_step(worker.step, remembered(memory)))
    while f'what="{what}"'.encode() not in worker.meters.exposition():
        await asyncio.sleep(0.001)
    assert worker.publisher.sent == []
    general.outage = False
    worker.index.up()
    await running
    assert [report.status for report in worker.embedded_events()] == ["ready"]


async def test_forgotten_memory_loses_its_vectors_silently(worker: EmbedSteps) -> None:
    memory = await worker.say_embedded("violin", 0)
    place = memory.embedding.place
    assert place is not None
    forgotten = Forgotten(memory_id=memory.memory_id, places=(place,))
    await run_step(worker.step, event_record(forgotten, TOPICS.remembered))
    assert await worker.index.count(worker.space("general", "general"), HERE) == 0
    assert worker.publisher.sent == []
    assert worker.due == []


async def test_unreadable_event_is_a_dead_letter_without_delay(worker: EmbedSteps) -> None:
    memory = worker.say("violin", 0)
    await run_step(worker.step, record(b"nonsense", topic=TOPICS.remembered), remembered(memory, 1))
    assert [out.value for out in worker.publisher.to(TOPICS.dead_letters)] == [b"nonsense"]
    assert [report.status for report in worker.embedded_events()] == ["ready"]
