"""`Embed` and `Understand` on the topic of remembered memories: vectors, and from them interaction modes.

Many memories are in flight at once; vectors are written in batches, in order. One event reports both to `Remember`, so
that a turn costs one write of its record. Language models are asked in the background.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

from agents.embedding.embed import Embed
from agents.embedding.held_vectors import EncodedMemory
from agents.maps.draw_map import DrawMap
from agents.memory.items import MemoryEvent
from agents.memory.remember import Remember
from agents.ports.pipelines import State
from agents.understanding.understand import Understand
from schemas.failures import ModelMissing, RowTooLarge
from schemas.internal.events import Embedded, Forgotten, Released, Remembered
from schemas.messages.records import Headers, Outgoing, Record
from schemas.state.interaction import Interaction
from schemas.state.memories import Memory
from streams.backoff import until_available
from streams.batching import batches
from streams.fair_queue import FairShare
from streams.flow.publisher import Publisher, await_all, no_writes
from streams.flow.requests.channel import APPLIED, EventReader, RecentEvents, derived_events, event_out
from streams.flow.runs.recorder import PartUnderWay, RunRecorder, end_part
from streams.foreground import Foreground
from streams.observability.metrics import Meters
from streams.observability.tracing import carried_headers
from streams.partition.commit import STORAGE_TIMEOUT_S, PartitionCommits, Writing
from streams.topics import Topics

# Report written vectors: apply the reports to the memories at once, and publish them for other processes.
#
# Enters: the reports of a batch that the indexer has written. Leaves: records with their embedding status, and
# `embedded.v1`, one record for the reports of a boundary. Guaranteed: when the call returns, the status is in the
# changelog and the report in the log. A process that reads reports of another one applies them; one that reads its own
# passes over what it has applied. So a kill between the two repeats a report, and loses none.

REPORTS_PER_SLICE = 16
"""Reports that are applied before other events are handled: each takes some 0.1 ms."""

REPORTS_PER_RECORD = 128
"""Reports in one record: some 50 KB before compression."""


class Report(NamedTuple):
    """The report of one vector; `carried` is the trace that its memory carries on."""

    partition: int
    boundary: str
    event: Embedded
    carried: Headers


class ReportEmbedded:
    """Reports in, memories and `Embedded` events written."""

    def __init__(
        self,
        remember_at: Callable[[int], Remember],
        commit: PartitionCommits,
        publisher: Publisher,
        topics: Topics,
        meters: Meters,
        recent: RecentEvents,
        foreground: Foreground | None = None,
    ) -> None:
        """`recent` tells the reader of the reports which are applied."""
        self._remember_at = remember_at
        self._commit = commit
        self._publisher = publisher
        self._topics = topics
        self._meters = meters
        self._recent = recent
        self._foreground = foreground or Foreground()

    async def __call__(self, reports: Sequence[Report]) -> None:
        """Apply and publish; returns when all of it is stored."""
        partitions = sorted({report.partition for report in reports})
        begun: list[Writing] = []
        sent: list[Awaitable[object]] = []
        try:
            for partition in partitions:
                # One after another: those that were begun are finished, whatever happens meanwhile.
                begun.append(await self._commit.begin(partition))  # noqa: PERF401
            await self._publish(reports, sent)
        finally:
            # Not one of them alone: which events are whose is not kept.
            written = asyncio.ensure_future(await_all(sent))
            finishing = [writing.finish([asyncio.shield(written)]) for writing in begun]
        await self._commit.commit(partitions)
        await await_all(finishing)

    async def _publish(self, reports: Sequence[Report], sent: list[Awaitable[object]]) -> None:
        applied: list[Report] = []
        for some in batches(reports, REPORTS_PER_SLICE):
            async with self._foreground.slice(share=1):
                for report in some:
                    if await self._apply(report, sent):
                        applied.append(report)
                    else:
                        # Its reader refuses it.
                        sent.append(await self._publisher.send(self._alone(report)))
        for out in self._records(applied):
            assert out.value is not None
            self._recent.keep(out.value, APPLIED)
            sent.append(await self._publisher.send(out))

    async def _apply(self, report: Report, sent: list[Awaitable[object]]) -> bool:
        """Apply a report, and publish what follows; False if its memory has no room for it."""

        async def apply() -> MemoryEvent | None:
            return self._remember_at(report.partition).embedded(report.event)

        try:
            derived = await until_available(apply, "storage", self._meters, at_most_s=STORAGE_TIMEOUT_S)
        except RowTooLarge:
            return False
        if derived is not None:
            follows = derived_events(self._topics, report.boundary, [derived], is_unhurried=True, recent=self._recent)
            sent.extend([await self._publisher.send(out) for out in follows])
        return True

    def _records(self, reports: Sequence[Report]) -> list[Outgoing]:
        """Return the records of reports: one that carries on a trace has its own."""
        by_boundary: defaultdict[str, list[Report]] = defaultdict(list)
        records = []
        for report in reports:
            if report.carried:
                records.append(self._alone(report))
            else:
                by_boundary[report.boundary].append(report)
        for boundary, same in by_boundary.items():
            for first, *others in batches(same, REPORTS_PER_RECORD):
                event = first.event.model_copy(update={"also": tuple(other.event for other in others)})
                records.append(event_out(self._topics.embedded, boundary, event, (), is_unhurried=True))
        return records

    def _alone(self, report: Report) -> Outgoing:
        return event_out(self._topics.embedded, report.boundary, report.event, report.carried, is_unhurried=True)


FLUSH_INTERVAL_S = 0.3
"""Between two writes to the vector index; a turn after a pause is written at once. Each write takes 1.6 ms of processor
time in each of its partitions, whatever the number of its points, and waits for the disk."""

WRITE_STEP = "memorize.index_write"
"""The step of a run in which a batch of vectors is written."""

RememberedEvent = Remembered | Forgotten | Released

REMEMBERED_EVENTS: Mapping[str, type[RememberedEvent]] = {
    "remembered.v1": Remembered,
    "forgotten.v1": Forgotten,
    "released.v1": Released,
}
"""The events read here, by schema name."""

AskModel = Callable[[int, Memory], None]
"""Queues a memory of a partition for the language model, if there is one."""


@dataclass(frozen=True, slots=True)
class EmbeddedMemory:
    encoded: EncodedMemory
    partition: int
    interaction: Interaction | None = None
    carried: Headers = ()
    """The trace that the memory's event carries on."""
    part: PartUnderWay | None = None
    """The part of its turn's run, if that is recorded."""


class EmbedRemembered:
    """`Remembered` and `Forgotten` in, vectors written and `Embedded` out."""

    window = 1024
    pause_s = FLUSH_INTERVAL_S
    fair_share: FairShare | None = None

    def __init__(
        self,
        reader: EventReader,
        embed: Embed,
        understand_at: Callable[[int], Understand],
        draw_map_at: Callable[[int], DrawMap],
        ask_model: AskModel,
        report: Callable[[Sequence[Report]], Awaitable[None]],
        meters: Meters,
        *,
        worker_run_id: str = "",
        runs: RunRecorder | None = None,
    ) -> None:
        self._runs = runs
        self._reader = reader
        self._embed = embed
        self._understand_at = understand_at
        self._draw_map_at = draw_map_at
        self._ask_model = ask_model
        self._report = report
        self._meters = meters
        self._worker_run_id = worker_run_id

    async def begin(self, record: Record) -> Awaitable[EmbeddedMemory | None]:
        event = await self._reader.read(record)
        return no_writes() if event is None else self._encode(event, record.partition)

    async def settle(self, finished: Sequence[EmbeddedMemory | None]) -> None:
        """Write the vectors, report them, and queue pending memories for the language model."""
        memories = [embedded for embedded in finished if embedded is not None]
        if not memories:
            return
        batch = [embedded.encoded for embedded in memories]
        began = perf_counter()
        events = await until_available(lambda: self._embed.write(batch), "vector index", self._meters)
        # Record the parts of a written batch, which began to be written at a time of `time.perf_counter`.
        for embedded in memories:
            if embedded.part is not None and embedded.encoded.memory is not None:
                embedded.part.timer.add_step(WRITE_STEP, began)
                embedded.part.outcome = {"batch": len(memories), "error": embedded.encoded.error is not None}
                end_part(self._runs, "index", embedded.encoded.memory, embedded.partition, embedded.part)
        memories = [embedded for embedded in memories if not embedded.encoded.is_release]
        # Take edited memories from the kept maps: their vectors have changed.
        edited: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
        for embedded in memories:
            if (memory := embedded.encoded.memory) is not None and memory.version > 1:
                edited[embedded.partition, memory.boundary].append(memory.memory_id)
        for (partition, boundary), memory_ids in edited.items():
            await self._draw_map_at(partition).outdate(boundary, memory_ids)
        latest = {embedded.encoded.memory_id: embedded for embedded in memories}
        await self._report([self._report_of(event, latest[event.memory_id]) for event in events])
        for embedded in latest.values():
            if embedded.encoded.memory is not None and embedded.encoded.memory.reading.status == "pending":
                self._ask_model(embedded.partition, embedded.encoded.memory)

    def _report_of(self, event: Embedded, embedded: EmbeddedMemory) -> Report:
        self._meters.embedded(event.status)
        assert embedded.encoded.memory is not None
        event = event.model_copy(update={"interaction": embedded.interaction, "run": self._worker_run_id})
        return Report(embedded.partition, embedded.encoded.memory.boundary, event, embedded.carried)

    async def _encode(self, event: RememberedEvent, partition: int) -> EmbeddedMemory:
        if isinstance(event, Forgotten | Released) or not event.memory.visibility.searchable:
            return EmbeddedMemory(await self._encoded(event, partition), partition)
        # Begin the part of a turn's run, if that is recorded.
        is_recorded = (
            self._runs is not None and event.memory.origin == "said" and self._runs.is_sampled(event.memory.memory_id)
        )
        part = PartUnderWay() if is_recorded else None
        understand = self._understand_at(partition)
        state: State = {}

        async def index(_state: State) -> State:
            encoded = await self._encoded(event, partition)
            interaction = await until_available(lambda: _classify(understand, event.memory), "embedder", self._meters)
            return {"vector": encoded, "interaction": interaction}

        with nullcontext() if part is None else part.timer:
            await understand.pipelines.run({"memorize.index": index}, state)
        return EmbeddedMemory(state["vector"], partition, state["interaction"], carried_headers(), part)

    def _encoded(self, event: RememberedEvent, partition: int) -> Awaitable[EncodedMemory]:
        return until_available(lambda: self._embed.encode(event, partition), "embedder", self._meters)


async def _classify(understand: Understand, memory: Memory) -> Interaction | None:
    try:
        return await understand.by_rules(memory)
    except ModelMissing:
        return None  # Classified lazily, at request time.
