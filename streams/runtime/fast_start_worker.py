"""Faust's worker without its fixed pauses at start and end, two seconds of each life.

All tables and agents exist before the app starts. Guaranteed: the same steps in the same order as in Faust.
"""

import asyncio
import logging
import os
import signal
from typing import Protocol, cast

import faust
import structlog
from faust.tables import TableManager
from faust.types import TP
from mode import Service

from streams.runtime.partition_store import PartitionStore, databases_of
from streams.runtime.process_end import DEFECT_CODE, end_process
from streams.runtime.safe_assignment_app import SafeAssignmentApp
from streams.runtime.table_recovery import TableRecovery

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
        """Return the recovery of the tables."""
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
                await self._release(partition, is_kept=partition in turned)

    async def _release(self, partition: int, *, is_kept: bool = False) -> None:
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
        """Start recovery."""
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
