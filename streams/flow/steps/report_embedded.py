"""Report written vectors: apply the reports to the memories at once, and publish them for other processes.

Enters: the reports of a batch that the indexer has written. Leaves: records with their embedding status, and
`embedded.v1`, one record for the reports of a boundary. Guaranteed: when the call returns, the status is in the
changelog and the report in the log. A process that reads reports of another one applies them; one that reads its own
passes over what it has applied. So a kill between the two repeats a report, and loses none.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from agents.memory.items import MemoryEvent
from agents.memory.remember import Remember
from schemas.failures import RowTooLarge
from schemas.internal.events import Embedded
from schemas.messages.records import Headers, Outgoing
from streams.backoff import until_available
from streams.batching import batches
from streams.flow.publisher import Publisher, await_all
from streams.flow.requests.events import APPLIED, RecentEvents, derived_events, event_out
from streams.foreground import Foreground
from streams.observability.metrics import Meters
from streams.partition.commit import STORAGE_TIMEOUT_S, PartitionCommits, Writing
from streams.topics import Topics

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
            loop = asyncio.get_running_loop()
            began = loop.time()
            for report in some:
                if await self._apply(report, sent):
                    applied.append(report)
                else:
                    # Its reader refuses it.
                    sent.append(await self._publisher.send(self._alone(report)))
            await self._foreground.give_way(loop.time() - began, share=1)
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
