"""Copies of other workers' tables on this worker's disk, kept up by their changelogs, for the day that one is lost.

Enters: the partitions that the assignor has this worker keep. Leaves: the same rows and offsets in the databases that
Faust would fill, and whatever is derived of them. Guaranteed: nothing is written while partitions change hands; Faust
finds a database as one that it has filled itself, and reads on from its offset. A copy serves no reader. Nothing of a
partition is opened that another process of the data directory holds: its copy is tried again later.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import structlog
from aiokafka.errors import KafkaError
from faust.types import TP
from modestream_client.kafka.log_reader import LogReader, open_log_reader

from schemas.failures import Unavailable
from streams.topics import MAX_OUTPUT_BYTES

PAGE_RECORDS = 500
"""Records between two moments at which partitions may change hands: some 0.3 s with long texts."""

ENDS_EVERY_S = 1.0
"""Between two looks at the ends of the changelogs."""

MAX_READY_LAG = 100
"""Records of a partition that a complete copy may lack: some tens of milliseconds of recovery."""

BACKOFF_S = 1.0

log = structlog.get_logger()

Rows = Mapping[bytes, bytes | None]
"""The last value of each key; None for a deleted one."""


class DerivedCopy(Protocol):
    """What is derived of a table's rows, by partition."""

    def leave(self, partition: int, position: int | None) -> None:
        """Note that a partition is no longer served, before it is closed; with `position`, it is kept as a copy.

        `position` is the next offset of its table.
        """

    def open(self, partition: int) -> None:
        """Begin to keep a copy."""

    def position(self, partition: int) -> int:
        """Return the offset to read from."""

    async def apply(self, partition: int, rows: Rows, position: int) -> None:
        """Apply rows before `position`, and make both durable."""

    def close(self, partition: int) -> None:
        """End; everything applied is durable."""


class FollowCopies:
    """Follows the changelogs of the copies that this worker keeps. Belongs to the worker's event loop."""

    def __init__(self, app: Any) -> None:
        """`app` is the worker's Faust app."""
        self._app = app
        self.derived: dict[str, DerivedCopy] = {}
        """What is derived of tables, by their names."""
        self.on_due: Callable[[], None] = lambda: None
        """Called when the copies of all partitions that this worker is to serve have become complete."""
        self._partitions: frozenset[int] = frozenset()
        self._open: set[int] = set()
        """The partitions that are held and whose derived copies are open."""
        self._behind: dict[int, int] = {}
        self._ready: frozenset[int] = frozenset()
        self._held = asyncio.Lock()
        self._changed = asyncio.Event()

    def ready(self) -> frozenset[int]:
        """Return the partitions whose copy is complete. May be called in any thread."""
        return self._ready

    def behind(self) -> dict[str, int | None]:
        """Return how many records the copy of each partition lacks; None before that is known."""
        return {str(partition): self._behind.get(partition) for partition in sorted(self._partitions)}

    @asynccontextmanager
    async def held(self, served: Collection[int]) -> AsyncIterator[frozenset[int]]:
        """Hold all copies while Faust opens and closes databases; then follow those that are assigned now.

        `served` are the partitions that are served from now on. Yields the copies.
        """
        async with self._held:
            copies = frozenset(self._app.assignor.copies).difference(served)
            # Nothing is followed where opening fails.
            self._partitions, self._ready = frozenset(), self._ready & copies
            self._behind = {one: lag for one, lag in self._behind.items() if one in copies}
            for partition in self._open - copies:
                for derived in self.derived.values():
                    derived.close(partition)
            self._open &= copies
            yield copies
            self._partitions = copies
            self._changed.set()

    def leave(self, partition: int, *, is_kept: bool) -> None:
        """Note that a partition is no longer served, before it is closed; where it is kept, how far its table is."""
        for name, derived in self.derived.items():
            table = self._app.tables[name]
            # Its database is open where it was served.
            is_open = table.data.is_open(partition)
            tp = TP(table.changelog_topic.get_topic_name(), partition)
            persisted = table.data.persisted_offset(tp) if is_kept and is_open else None
            derived.leave(partition, None if persisted is None else persisted + 1)

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
        """Open the copies of partitions that no other process holds; return all that are open."""
        async with self._held:
            for partition in sorted(self._partitions - self._open):
                if self._app.partition_locks.try_copy(partition):
                    for derived in self.derived.values():
                        derived.open(partition)
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
        """Return the offset to read from: the earlier one of the table and of what is derived of it."""
        table = self._app.tables._changelogs[tp.topic]  # noqa: SLF001
        persisted = table.data.persisted_offset(tp)
        position = 0 if persisted is None else persisted + 1
        derived = self.derived.get(table.name)
        return position if derived is None else min(position, derived.position(tp.partition))

    async def _apply(self, tp: TP, records: Sequence[Any]) -> None:
        async with self._held:
            if tp.partition not in self._open:
                return
            table = self._app.tables._changelogs[tp.topic]  # noqa: SLF001
            last = {record.key: record for record in records}
            table.data.apply_changelog_batch([_Event(_Row.of(tp, one)) for one in last.values()])
            if (derived := self.derived.get(table.name)) is not None:
                rows = {key: one.value for key, one in last.items()}
                await derived.apply(tp.partition, rows, records[-1].offset + 1)
        await asyncio.sleep(0)

    async def _look(self, reader: LogReader, changelogs: Collection[TP]) -> None:
        """Note what the copies lack, and call back where this completes those that are due."""
        ends = await reader.ends()
        behind: dict[int, int] = {}
        for changelog in changelogs:
            lacking = max(0, ends[changelog] - (reader.position(changelog) or 0))
            behind[changelog.partition] = behind.get(changelog.partition, 0) + lacking
        if self._changed.is_set():
            return
        self._behind, before = behind, self._ready
        self._ready = frozenset(one for one, lag in behind.items() if lag <= MAX_READY_LAG)
        due = self._app.assignor.due
        if due and due <= self._ready and not due <= before:
            log.info("copies of the partitions that are due are complete", partitions=sorted(due))
            self.on_due()


@dataclass(frozen=True, slots=True)
class _Row:
    """What Faust's store reads of a message."""

    tp: TP
    partition: int
    offset: int
    key: bytes
    value: bytes | None

    @classmethod
    def of(cls, tp: TP, record: Any) -> "_Row":
        return cls(tp, tp.partition, record.offset, record.key, record.value)


@dataclass(frozen=True, slots=True)
class _Event:
    message: _Row
