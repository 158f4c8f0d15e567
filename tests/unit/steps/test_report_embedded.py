"""`ReportEmbedded`: vectors are reported to memories at once, and to other processes by one record for each user."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.memory.remember import Remember
from schemas.failures import RowTooLarge
from schemas.internal.events import Embedded, Remembered
from schemas.messages.records import Record
from schemas.state.memories import Memory
from streams.flow.requests.channel import EventReader, RecentEvents
from streams.flow.steps.embed import Report, ReportEmbedded
from streams.flow.steps.remember import MEMORY_EVENTS, RememberEvents
from tests.builders.turns import record
from tests.harnesses.remember_steps import RememberSteps
from tests.harnesses.worker import HERE, TOPICS

TRACE = (("traceparent", b"00-1"),)


class RefusingRows:
    """`Remember` that has no room for some memories."""

    def __init__(self, remember: Remember, *refused: str) -> None:
        self._remember = remember
        self._refused = refused

    def embedded(self, event: Embedded) -> Any:
        """Apply a report, or raise RowTooLarge."""
        if event.memory_id in self._refused:
            raise RowTooLarge("memories", 2, "MAX_ROW", 1)
        return self._remember.embedded(event)


async def report_of(worker: RememberSteps, memory: Memory, **fields: Any) -> Report:
    [event] = await worker.embed.write([await worker.embed.encode(Remembered(memory=memory), HERE)])
    event = event.model_copy(update={"run": worker.ctx.worker_run_id})
    return Report(HERE, memory.boundary, event, ())._replace(**fields)


def reporter(worker: RememberSteps, remember: Any = None) -> ReportEmbedded:
    agent = remember or worker.remember
    return ReportEmbedded(
        lambda _: agent, worker.ctx.commit, worker.publisher, TOPICS, worker.meters, worker.ctx.recent
    )


def reader(worker: RememberSteps, recent: RecentEvents) -> RememberEvents:
    """Return the step that reads reports, in the process that has these recent events."""
    return RememberEvents(
        EventReader(MEMORY_EVENTS, worker.ctx.replies, recent=recent),
        lambda _: worker.remember,
        worker.stores,
        worker.ctx.commit,
        worker.publisher,
        TOPICS,
        worker.meters,
    )


def published(worker: RememberSteps) -> list[Record]:
    sent = worker.publisher.to(TOPICS.embedded)
    return [record(out.value, topic=TOPICS.embedded, offset=place) for place, out in enumerate(sent)]


def statuses(worker: RememberSteps, memories: list[Memory]) -> list[str]:
    return [worker.stored(memory).embedding.status for memory in memories]


async def test_reports_are_applied_at_once_and_share_a_record(worker: RememberSteps) -> None:
    memories = [worker.say(text, offset, mode="code") for offset, text in enumerate("abc")]
    await reporter(worker)([await report_of(worker, memory) for memory in memories])
    assert statuses(worker, memories) == ["ready"] * 3
    [out] = worker.publisher.to(TOPICS.embedded)
    first = Embedded.model_validate_json(out.value or b"")
    assert [each.memory_id for each in first.each()] == [memory.memory_id for memory in memories]
    assert out.key == b"u1"
    assert first.memory_id == memories[0].memory_id
    assert first.status == "ready"


async def test_users_and_traced_memories_have_records_of_their_own(worker: RememberSteps) -> None:
    reports = [await report_of(worker, worker.say(text, offset, mode="code")) for offset, text in enumerate("abc")]
    await reporter(worker)([reports[0], reports[1]._replace(carried=TRACE), reports[2]._replace(boundary="u2")])
    assert [(out.key, out.headers) for out in worker.publisher.to(TOPICS.embedded)] == [
        (b"u1", TRACE),
        (b"u1", ()),
        (b"u2", ()),
    ]


async def test_process_passes_over_what_it_has_applied_and_another_applies_it(worker: RememberSteps) -> None:
    memories = [worker.say(text, offset, mode="code") for offset, text in enumerate("abc")]
    await reporter(worker)([await report_of(worker, memory) for memory in memories])
    for memory in memories:
        # As after the loss of what the process has written.
        worker.memories.put(HERE, memory)
    await _read(reader(worker, worker.ctx.recent), worker)
    assert statuses(worker, memories) == ["pending"] * 3
    await _read(reader(worker, RecentEvents()), worker)
    assert statuses(worker, memories) == ["ready"] * 3


async def test_what_follows_a_report_is_published(worker: RememberSteps) -> None:
    memory = worker.say("a", 0, mode="code")
    report = await report_of(worker, memory)
    worker.say("b", 1, mode="code", turn_id="a")
    worker.publisher.sent.clear()
    await reporter(worker)([report])
    assert [each.text for each in worker.remembered_memories()] == ["b"]


async def test_memory_without_room_is_left_to_the_reader(worker: RememberSteps) -> None:
    memories = [worker.say(text, offset, mode="code") for offset, text in enumerate("ab")]
    refusing = RefusingRows(worker.remember, memories[0].memory_id)
    await reporter(worker, refusing)([await report_of(worker, memory) for memory in memories])
    assert statuses(worker, memories) == ["pending", "ready"]
    assert [len(Embedded.model_validate_json(each.value or b"").each()) for each in published(worker)] == [1, 1]
    await _read(reader(worker, worker.ctx.recent), worker)
    assert statuses(worker, memories) == ["ready", "ready"]


@pytest.mark.usefixtures("short_backoff")
async def test_full_disk_delays_a_report(tmp_path: Path, worker: RememberSteps) -> None:
    memory = worker.say("a", 0, mode="code")
    report = await report_of(worker, memory)
    worker.full.every = worker.full.writes + 1
    await reporter(worker)([report])
    assert worker.stored(memory).embedding.status == "ready"


async def _read(step: RememberEvents, worker: RememberSteps) -> None:
    for each in published(worker):
        await (await step(replace(each, partition=HERE)))
