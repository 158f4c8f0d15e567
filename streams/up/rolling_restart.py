"""Restarts the workers one after another, so that each partition is away for one restart of its worker.

Enters: the workers. Guaranteed: one worker at a time is away; the next one follows when all partitions that were served
before are served again. A worker that does not come back ends the restart: the others stay as they are.
"""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import orjson

from streams.up.console import PrintLine
from streams.up.workers import ReportedStatus

BACK_TIMEOUT_S = 300.0
"""How long a worker may take to serve again: a start that finds its tables takes seconds, a recovery longer."""

POLL_INTERVAL_S = 0.1
"""Between two looks at the workers."""


class RestartableWorker(Protocol):
    """A supervised worker."""

    name: str

    async def prepare(self) -> None:
        """Load its replacement."""

    async def restart(self) -> None:
        """End it cleanly; its replacement begins at once."""

    async def status(self) -> ReportedStatus | None:
        """Return its status; None if it does not answer."""


class RollingRestart:
    """Rolling restarts of the same workers."""

    def __init__(
        self,
        workers: Sequence[RestartableWorker],
        progress: Path,
        print_line: PrintLine,
        back_s: float = BACK_TIMEOUT_S,
    ) -> None:
        """`progress` is the file in which the state is written for the command that asked for it."""
        self._workers = workers
        self._progress = progress
        self._print_line = print_line
        self._back_s = back_s

    async def run(self) -> bool:
        """Restart all; return whether all are back."""
        for worker in self._workers:
            self._note("running", worker.name)
            before = await self._served()
            await worker.prepare()
            began = time.monotonic()
            await worker.restart()
            if not await self._is_back(worker, before):
                self._print_line(f"rolling restart: the {worker.name} is not back, the others are not restarted")
                self._note("failed", worker.name)
                return False
            self._print_line(f"rolling restart: the {worker.name} is back after {time.monotonic() - began:.1f} s")
        self._note("done", "")
        return True

    async def _is_back(self, worker: RestartableWorker, before: frozenset[int]) -> bool:
        try:
            async with asyncio.timeout(self._back_s):
                while await worker.status() is None or not before <= await self._served():
                    await asyncio.sleep(POLL_INTERVAL_S)
        except TimeoutError:
            return False
        return True

    async def _served(self) -> frozenset[int]:
        """Return the partitions that are served by any of the workers."""
        statuses = await asyncio.gather(*(worker.status() for worker in self._workers))
        return frozenset[int]().union(
            *(status.partitions for status in statuses if status is not None and not status.recovering)
        )

    def _note(self, state: str, worker: str) -> None:
        draft = self._progress.with_suffix(".new")
        draft.write_bytes(orjson.dumps({"state": state, "worker": worker}))
        draft.replace(self._progress)
