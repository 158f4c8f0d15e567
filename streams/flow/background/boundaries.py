"""Keep the topic `boundaries` right: `boundary.v1` of each boundary that has changed.

Enters: the boundaries of which the lexical index has committed writes, those whose modes were declared, and partitions
that arrive. Leaves: the latest counts of each, once in `PUBLISH_INTERVAL_S`. Guaranteed: after a partition has arrived
the topic is right again, whatever a kill has lost: all its boundaries are counted and compared with what the topic
tells. That is a page at a time, in a thread; the event loop reads declarations and hands records over. The tombstone of
a forgotten user is written with the change that forgets (`streams.flow.steps.apply_changes`).
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

import structlog

from agents.rules.memory.boundary_summary import summarise_boundary
from schemas.failures import Unavailable
from schemas.messages.published import Boundary
from schemas.messages.records import Outgoing, Record
from schemas.state.memories import item_index_name, unsearchable_index_name
from schemas.state.modes import ModeDeclarations
from streams.backoff import until_available
from streams.batching import batches
from streams.flow.publisher import await_all
from streams.flow.stores import BoundaryCounts
from streams.flow.worker_context import WorkerContext

# Boundaries are counted in a thread. Of two counts of one boundary the later is published last, and no count of before
# follows the tombstone of a forgotten user.

PAGE_SIZE = 100
"""Boundaries that are counted at once, in some milliseconds of a thread."""

IsWanted = Callable[[str, bytes], bool]
"""True if a boundary's new value is to be published; asked just before."""


def note_told(told: dict[str, int], record: Record) -> None:
    """Note the digest of a record's value under its boundary; of a tombstone, nothing. 150 bytes for each boundary."""
    boundary = (record.key or b"").decode(errors="replace")
    if record.value is None:
        told.pop(boundary, None)
    else:
        told[boundary] = hash(record.value)


class BoundaryPages:
    """Publishes pages of boundaries, one page at a time."""

    def __init__(self, counts: BoundaryCounts, ctx: WorkerContext) -> None:
        self._counts = counts
        self._ctx = ctx
        self._room = asyncio.Lock()

    async def publish(self, partition: int, boundaries: Sequence[str], is_wanted: IsWanted) -> None:
        """Count these boundaries and publish the counts that are due.

        Raises Unavailable where the index can't be read, KeyError where the partition has left.
        """
        async with self._room:
            forgets = self._ctx.boundaries.forgets
            declared = {name: self._ctx.stores.modes.get(partition, name) for name in boundaries}
            found = await asyncio.to_thread(self._summarise, partition, declared)
            sent = []
            for summary, value in found:
                # Just before it is sent: while the thread counted, the user may have been forgotten.
                if (
                    self._ctx.is_assigned(partition)
                    and self._ctx.boundaries.may_follow_tombstone(summary.boundary, forgets, summary.memories)
                    and is_wanted(summary.boundary, value)
                ):
                    out = Outgoing(self._ctx.topics.boundaries, summary.boundary.encode(), value)
                    sent.append(await self._ctx.publisher.send(out))
            await await_all(sent)

    def _summarise(self, partition: int, declared: Mapping[str, ModeDeclarations]) -> list[tuple[Boundary, bytes]]:
        counts = self._counts.read(partition, list(declared))
        fields = self._ctx.scope_model.boundary_fields
        summaries = [summarise_boundary(name, counts[name], modes, fields) for name, modes in declared.items()]
        return [(summary, summary.model_dump_json(by_alias=True).encode()) for summary in summaries]


log = structlog.get_logger()

PUBLISH_INTERVAL_S = 3.0
"""Interval between two records of one boundary: each costs a count and 400 bytes."""

MEASURE_INTERVAL_S = 60.0
"""Interval between two counts of all vectors: 250,000 memories take 30 ms of a thread that releases the GIL."""

UNSEARCHABLE_SUFFIX = unsearchable_index_name("")
"""The suffix of the index names of unsearchable memories, which are counted with the rest of their boundary."""

ITEMS_SUFFIX = item_index_name("")
"""The suffix of the index names of items, which are part of their turns and are not counted."""


class BoundaryLog(Protocol):
    async def told(self, partition: int) -> dict[str, int]:
        """Return the last published state of each boundary of a partition, by `note_told`. Raises Unavailable."""


class PublishBoundaries:
    """Publishes the counts of changed boundaries. Runs until cancelled."""

    def __init__(self, counts: BoundaryCounts, topic: BoundaryLog, ctx: WorkerContext) -> None:
        self._counts = counts
        self._topic = topic
        self._ctx = ctx
        self._pages = BoundaryPages(counts, ctx)
        self._arrived: set[int] = set()
        self._wake = asyncio.Event()
        self._comparing = asyncio.Lock()
        self._since: dict[int, set[str]] = {}
        """By partition that is being compared, the boundaries that have changed since: they are published anyway."""

    def look(self, partitions: Collection[int]) -> None:
        """Queue partitions that have arrived for a comparison, which covers all changes until now."""
        for partition in partitions:
            self._take(partition)
        self._arrived.update(partitions)
        self._wake.set()

    async def run(self) -> None:
        """Publish changes, and compare queued partitions, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._publish_changes())
            tasks.create_task(self._compare_arrived())
            tasks.create_task(self._measure_vectors())

    async def _publish_changes(self) -> None:
        while True:
            await asyncio.sleep(PUBLISH_INTERVAL_S)
            for partition in self._ctx.served_partitions():
                await self.publish(partition)

    async def _measure_vectors(self) -> None:
        """Keep the gauges of this worker's vectors."""
        while True:
            try:
                await self.measure_vectors()
            except (KeyError, Unavailable) as problem:
                log.warning("vectors could not be counted", problem=repr(problem))
            await asyncio.sleep(MEASURE_INTERVAL_S)

    async def measure_vectors(self) -> None:
        """Count the vectors of the served partitions by their states. Raises Unavailable, or KeyError."""
        counts: Counter[str] = Counter()
        for partition in self._ctx.served_partitions():
            counts.update(await asyncio.to_thread(self._counts.statuses, partition))
        self._ctx.meters.measure_vectors(counts)

    async def publish(self, partition: int) -> None:
        """Publish the boundaries of a partition that have changed since the last call."""
        due = self._take(partition)
        if partition in self._since:
            self._since[partition] |= due
        try:
            for page in batches(sorted(due), PAGE_SIZE):
                await self._pages.publish(partition, page, lambda _boundary, _value: True)
        except (KeyError, Unavailable) as problem:
            log.warning("boundaries could not be counted", partition=partition, problem=repr(problem))
            self._ctx.boundaries.count_again(partition, due)

    async def _compare_arrived(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._arrived:
                partition = self._arrived.pop()
                try:
                    await self.compare(partition)
                except (KeyError, Unavailable) as problem:
                    # The partition has left, or its lexical index can't be read: the next assignment compares again.
                    log.warning("boundaries could not be compared", partition=partition, problem=repr(problem))

    async def compare(self, partition: int) -> None:
        """Publish every boundary of a partition of which the topic tells nothing, or something else."""
        async with self._comparing:
            since = self._since[partition] = set()

            def read() -> Awaitable[dict[str, int]]:
                return self._topic.told(partition)

            def differs(boundary: str, value: bytes) -> bool:
                changed = boundary in since or self._ctx.boundaries.is_due(partition, boundary)
                return told.pop(boundary, None) != hash(value) and not changed

            try:
                told = await until_available(read, "kafka", self._ctx.meters)
                last = -1
                while page := await asyncio.to_thread(self._counts.names, partition, last, PAGE_SIZE):
                    last = page[-1][0]
                    await self._pages.publish(partition, sorted(boundaries_of(name for _, name in page)), differs)
                # What is left had memories once, and has none any more.
                for names in batches(list(told), PAGE_SIZE):
                    await self._pages.publish(partition, names, differs)
            finally:
                del self._since[partition]

    def _take(self, partition: int) -> set[str]:
        """Return the committed changes."""
        written = boundaries_of(self._ctx.stores.words.take_changed(partition))
        return written | self._ctx.boundaries.take(partition)


def boundaries_of(index_names: Iterable[str]) -> set[str]:
    names = {name.removesuffix(UNSEARCHABLE_SUFFIX) for name in index_names}
    return {name for name in names if not name.endswith(ITEMS_SUFFIX)}
