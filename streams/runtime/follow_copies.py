"""Copies of other workers' tables on this worker's disk, updated from their changelogs, in case a worker is lost.

Enters: the partitions that the assignor has this worker keep. Leaves: the same rows and offsets as Faust would write to
the databases, and data derived from the rows. Guaranteed: nothing is written while partitions change hands; Faust can't
tell such a database from its own, and reads on from its offset. A copy serves no reader. A partition held by another
process of the data directory is not opened: its copy is tried again later.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any

import structlog
from aiokafka.errors import KafkaError
from faust.types import TP
from modestream_client.kafka.log_reader import LogReader, open_log_reader

from schemas.failures import Unavailable
from streams.batching import batches
from streams.foreground import Foreground
from streams.runtime.awaited_table import PartitionStore
from streams.topics import MAX_OUTPUT_BYTES

PAGE_RECORDS = 500
"""Records between points at which partitions may change hands: about 0.3 s with long texts."""

ROWS_AT_A_TIME = 8
"""Rows written before requests come first: 4 ms with usual memories."""

ENDS_EVERY_S = 1.0
"""Interval between checks of the ends of the changelogs."""

MAX_READY_LAG = 100
"""Records of a partition that a complete copy may lack: some tens of milliseconds of recovery."""

BACKOFF_S = 1.0

log = structlog.get_logger()


class FollowCopies:
    """Follows the changelogs of the copies that this worker keeps. Belongs to the worker's event loop."""

    def __init__(self, app: Any) -> None:
        """`app` is the worker's Faust app."""
        self._app = app
        self.foreground = Foreground()
        """Whose requests come first."""
        self.on_due: Callable[[], None] = lambda: None
        """Called when the copies of all partitions that this worker is to serve have become complete."""
        self._partitions: frozenset[int] = frozenset()
        self._open: set[int] = set()
        """The partitions that are held."""
        self._behind: dict[int, int] = {}
        self._ready: frozenset[int] = frozenset()
        self._held = asyncio.Lock()
        self._changed = asyncio.Event()

    def ready(self) -> frozenset[int]:
        """Return the partitions whose copy is complete. May be called in any thread."""
        return self._ready

    def behind(self) -> dict[str, int | None]:
        """Return how many records the copy of each partition lacks; None while unknown."""
        return {str(partition): self._behind.get(partition) for partition in sorted(self._partitions)}

    @asynccontextmanager
    async def held(self, served: Collection[int]) -> AsyncIterator[frozenset[int]]:
        """Hold all copies while Faust opens and closes databases; then follow the assigned ones.

        `served` are the partitions that are served from now on. Yields the copies.
        """
        async with self._held:
            copies = frozenset(self._app.assignor.copies).difference(served)
            # Nothing is followed where opening fails.
            self._partitions, self._ready = frozenset(), self._ready & copies
            self._behind = {partition: lag for partition, lag in self._behind.items() if partition in copies}
            self._open &= copies
            yield copies
            self._partitions = copies
            self._changed.set()

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            self._changed.clear()
            if not self._partitions:
                await self._changed.wait()
                continue
            try:
                if kept := await self._take():
                    await self._follow(kept)
                else:
                    await asyncio.sleep(BACKOFF_S)
            except (KafkaError, Unavailable) as problem:
                log.warning("copies can't be kept up, trying again", problem=repr(problem))
                await asyncio.sleep(BACKOFF_S)

    async def _take(self) -> frozenset[int]:
        """Open the copies of partitions that no other process holds; return all open ones."""
        async with self._held:
            for partition in sorted(self._partitions - self._open):
                if self._app.partition_locks.try_copy(partition):
                    self._open.add(partition)
            return frozenset(self._open)

    async def _follow(self, partitions: frozenset[int]) -> None:
        topics = sorted(self._app.tables.changelog_topics)
        changelogs = [TP(topic, partition) for topic in topics for partition in partitions]
        connection = self._app.kafka_connection
        async with open_log_reader(connection, changelogs, max_partition_fetch_bytes=MAX_OUTPUT_BYTES) as reader:
            async with self._held:
                # Otherwise partitions have changed hands meanwhile, and their files may be another process's.
                if self._changed.is_set():
                    return
                reader.seek({changelog: self._position(changelog) for changelog in changelogs})
            looked = float("-inf")
            while not self._changed.is_set():
                for changelog, records in (await reader.poll(PAGE_RECORDS)).items():
                    await self._apply(TP(*changelog), records)
                if (now := asyncio.get_running_loop().time()) - looked > ENDS_EVERY_S:
                    looked = now
                    await self._look(reader, changelogs)
                    if await self._take() != partitions:
                        return

    def _position(self, tp: TP) -> int:
        persisted = self._store(tp).persisted_offset(tp)
        return 0 if persisted is None else persisted + 1

    async def _apply(self, tp: TP, records: Sequence[Any]) -> None:
        async with self._held:
            if tp.partition not in self._open:
                return
            store = self._store(tp)
            for some in batches(records, ROWS_AT_A_TIME):
                async with self.foreground.slice():
                    store.apply_rows(tp, {record.key: record.value for record in some}, some[-1].offset)
            store.commit(tp.partition)

    def _store(self, tp: TP) -> PartitionStore:
        store: PartitionStore = self._app.tables._changelogs[tp.topic].data  # noqa: SLF001
        return store

    async def _look(self, reader: LogReader, changelogs: Collection[TP]) -> None:
        """Note the lag of the copies, and call back if this completes the required ones."""
        ends = await reader.ends()
        behind: dict[int, int] = {}
        for changelog in changelogs:
            lacking = max(0, ends[changelog] - (reader.position(changelog) or 0))
            behind[changelog.partition] = behind.get(changelog.partition, 0) + lacking
        if self._changed.is_set():
            return
        self._behind, before = behind, self._ready
        self._ready = frozenset(partition for partition, lag in behind.items() if lag <= MAX_READY_LAG)
        due = self._app.assignor.due
        if due and due <= self._ready and not due <= before:
            log.info("copies of the partitions that are due are complete", partitions=sorted(due))
            self.on_due()
