"""Faust's worker without its fixed pauses at start and end, two seconds of each life.

All tables and agents exist before the app starts. Guaranteed: the same steps in the same order as in Faust.
"""

import asyncio
import logging
import os
import signal
from collections import Counter
from collections.abc import Iterable
from typing import Any, Protocol, cast

import faust
import structlog
from faust.exceptions import ConsistencyError
from faust.tables import TableManager
from faust.tables.recovery import Recovery
from faust.types import TP
from mode import Service

from streams.batching import batches
from streams.partition.database import TableRows
from streams.runtime.awaited_table import PartitionStore, databases_of
from streams.runtime.fence import DEFECT_CODE, end_process
from streams.runtime.partition_assignor import SafeAssignmentApp

# Faust's recovery of tables, where a table may be ahead of its changelog: a power cut took the end of Kafka's log.
#
# Enters: the persisted offset of each table, and the end of its changelog. Leaves: the same rows in both. Guaranteed: a
# row of the table is in the changelog before events flow, tombstones included; after a kill it starts over, as a mark
# in the database shows that not all rows are written. Faust would end the worker at every start.
#
# A log without any of the tables' last keys is refused: it belongs to another deployment.

MIN_REBUILT_ROWS = 5000
"""Recovered rows of memories above which the lexical index is rebuilt, in another process, instead of row by row."""

ROWS_AT_ONCE = 500
"""Rows sent before the first of them is awaited: a megabyte of usual memories."""


class TableRecovery(Recovery):
    """Completes the changelogs of tables that are ahead of them, instead of ending the worker."""

    def _add(self, table: Any, tp: TP, offsets: Counter[TP]) -> None:
        """Add a partition whose table may still be open in its former process."""
        self.tp_to_table[tp] = table
        offsets.setdefault(tp, None)  # type: ignore[arg-type] # as Faust does: it is read before the offsets are used

    async def _wait(self, coro: Any, timeout: Any = None) -> None:
        """Wait for a step of recovery; before the first, for the partitions, until they are held or reassigned."""
        if not self._typed_app.partition_locks.are_held:
            try:
                await super()._wait(self._hold())
            except BaseException:
                if asyncio.iscoroutine(coro):
                    coro.close()
                raise
        await super()._wait(coro, timeout)

    async def _hold(self) -> None:
        await self._typed_app.partition_locks.acquire()
        for tp in sorted(self.active_tps):
            self._store(tp).rows(tp.partition)

    async def _build_offsets(self, consumer: Any, tps: set[TP], destination: Counter[TP], title: str) -> None:
        for tp in tps:
            if (persisted := self._store(tp).persisted_offset(tp)) is not None:
                destination[tp] = persisted
        await super()._build_offsets(consumer, tps, destination, title)
        for tp in tps:
            lacking = self.active_highwaters[tp] - destination[tp] if title == "active" else 0
            if self.tp_to_table[tp].name in self._typed_app.derive and lacking > MIN_REBUILT_ROWS:
                self._typed_app.on_long_recovery(tp.partition)
        ahead = [tp for tp in tps if title == "active" and destination[tp] > self.active_highwaters[tp]]
        if ahead and not await self._is_own_log(consumer, tps):
            raise ConsistencyError(
                f"{ahead} end before the tables of this data directory, which have none of the last keys there: Kafka"
                " is empty, or that of another deployment; give each deployment its own data directory"
            )
        for tp in ahead:
            log.warning("a table is ahead of its changelog, which is completed", topic=tp.topic, partition=tp.partition)
            destination[tp] = last = self.active_highwaters[tp]
            self._store(tp).set_persisted_offset(tp, last)
            self._store(tp).set_unwritten(tp, is_unwritten=True)

    async def on_recovery_completed(self, generation_id: int = 0) -> None:
        """Complete the changelogs, and let events flow."""
        await self.complete_changelogs()
        await super().on_recovery_completed(generation_id)

    async def complete_changelogs(self) -> None:
        """Write the rows of marked tables to their changelogs."""
        for tp in sorted(self.active_tps):
            if self._store(tp).is_unwritten(tp):
                # Write all rows to the changelog, and remove the mark.
                producer, persisted = self.app.producer, self._store(tp).persisted_offset(tp)
                for rows in batches(self._rows(tp).items(), ROWS_AT_ONCE):
                    sent = [await producer.send(tp.topic, key, value, tp.partition, None, None) for key, value in rows]
                    for sending in sent:
                        persisted = (await sending).offset
                if persisted is not None:
                    self._store(tp).set_persisted_offset(tp, persisted)
                self._store(tp).set_unwritten(tp, is_unwritten=False)

    async def _is_own_log(self, consumer: Any, tps: Iterable[TP]) -> bool:
        """True if a table has a row for one of its changelog's last keys: the changelog is then the table's own."""
        for tp in sorted(tps):
            keys = await consumer.last_keys(tp, self.active_highwaters[tp])
            if any(self._rows(tp).get(key) is not None for key in keys):
                return True
        return False

    @property
    def _typed_app(self) -> SafeAssignmentApp:
        return cast("SafeAssignmentApp", self.app)

    def _rows(self, tp: TP) -> TableRows:
        return self._store(tp).rows(tp.partition)

    def _store(self, tp: TP) -> PartitionStore:
        return cast("PartitionStore", cast("Any", self.tp_to_table[tp]).data)


log = structlog.get_logger()

SHUTDOWN_TIMEOUT_S = 1.0
"""Time for cancelled tasks to end before the loop is closed; Faust always waits this long."""


class StartedParts(Protocol):
    """A part started before the Faust app and stopped after it."""

    async def start(self) -> None:
        """Start; an exception ends the process."""

    async def stop(self) -> None:
        """Close everything."""


class FastStartTables(TableManager):
    """Opens the tables at once: Faust waits a second for tables that an app might still add."""

    @property
    def recovery(self) -> TableRecovery:
        if self._recovery is None:
            self._recovery = TableRecovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return cast("TableRecovery", self._recovery)

    async def on_rebalance(
        self, assigned: set[TP], revoked: set[TP], newly_assigned: set[TP], generation_id: int = 0
    ) -> None:
        """Start recovery, and release the partitions that are other workers' now.

        Recovery waits for the newly assigned partitions (`TableRecovery`). The release comes after it, as its former
        round still reads the tables until the new one starts. Copies are neither read nor written meanwhile.
        """
        locks, served = self._typed_app.partition_locks, {tp.partition for tp in assigned}
        async with self._typed_app.copies.held(served) as copies:
            turned = {
                partition
                for partition in locks.assigned & copies
                if partition not in served and locks.is_held(partition)
            }
            gained, gone = sorted(served - locks.assigned), sorted(locks.assigned - served)
            log.info("partitions assigned", partitions=sorted(served), gained=gained, lost=gone)
            lost = locks.assign(served, copies)
            await super().on_rebalance(assigned, revoked, newly_assigned, generation_id)
            for partition in sorted({*lost, *turned}):
                await self.release(partition, is_kept=partition in turned)

    async def release(self, partition: int, *, is_kept: bool = False) -> None:
        """Close everything open of a partition, then release it, unless it is kept as a copy."""
        try:
            for table in self.values():
                cast("PartitionStore", table.data).close_partition(partition)
            await self._typed_app.on_partition_lost(partition)
            databases_of(self.app).close(partition)
        except Exception:
            # The end of the process releases it as well, and the next owner repairs the effects of a kill.
            log.exception("a partition could not be released, ending the process", partition=partition)
            end_process()
        if not is_kept:
            self._typed_app.partition_locks.release(partition)

    @property
    def _typed_app(self) -> "SafeAssignmentApp":
        return cast("SafeAssignmentApp", self.app)

    async def on_start(self) -> None:
        await self._update_channels()
        await self.recovery.start()


class FastStartWorker(faust.Worker):
    """Ends when its last task has ended: Faust always waits a second. Logs the signal that ends it."""

    def _schedule_shutdown(self, signal: signal.Signals) -> None:
        log.info("stopping", signal=signal.name)
        super()._schedule_shutdown(signal)

    async def _sentinel_task(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=SHUTDOWN_TIMEOUT_S)


class _PartsService(Service):
    def __init__(self, parts: StartedParts) -> None:
        super().__init__()
        self._parts = parts

    async def on_start(self) -> None:
        await self._parts.start()

    async def on_stop(self) -> None:
        await self._parts.stop()


def run_until_signal(app: faust.App, parts: StartedParts) -> int:
    """Run the parts and the app until SIGTERM or SIGINT, then finish events in flight and commit.

    Returns the exit code: that of a defect unless a signal ended them. Raises SystemExit with the reason where a part
    refuses its settings.
    """
    worker = FastStartWorker(app, _PartsService(parts), quiet=True, loglevel=logging.WARNING, override_logging=False)
    worker.spinner = None
    try:
        worker.execute_from_commandline()
    except SystemExit as end:
        if isinstance(end.code, str):
            raise
        return DEFECT_CODE if end.code else os.EX_OK
