"""The job `refresh` on its topic, and the same within consolidations: one of a boundary at a time, users in turn."""

import asyncio
from collections.abc import Callable
from weakref import WeakValueDictionary

from agents.understanding.refresh import Refresh, RefreshLimits
from schemas.internal.changes import Job, JobProgress
from streams.fair_queue import FairTurns
from streams.flow.requests.channel import HandlerResult
from streams.flow.steps.refresh import RefreshRun
from streams.flow.worker_context import WorkerContext

MAX_ASKED_AT_ONCE = 8
"""Turns about which models are asked for jobs at a time, in one worker; new turns have calls of their own."""

MAX_MODEL_TURN_S = 60.0
"""Seconds of a user's turn at the model: what takes longer holds up no other."""


class RunRefreshes:
    """Handles jobs of the kind `refresh`, one of a boundary at a time."""

    def __init__(self, refresh_at: Callable[[int], Refresh], ctx: WorkerContext) -> None:
        self._refresh_at = refresh_at
        self._ctx = ctx
        self._turns = FairTurns(MAX_ASKED_AT_ONCE, MAX_MODEL_TURN_S)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def __call__(self, job: Job, partition: int) -> HandlerResult:
        """Run the job to its end. Without an answer, the worker that has the partition now gets the job again."""
        async with self.lock(job):
            with self._ctx.jobs.running(job) as tally:
                refresh = self.at(partition)
                running = self.prepare(refresh, job, tally, partition, refresh.limits.of(job))
                if not await running.run_to_end():
                    return HandlerResult(None)
        return HandlerResult(running.answer())

    def at(self, partition: int) -> Refresh:
        return self._refresh_at(partition)

    def lock(self, job: Job) -> asyncio.Lock:
        """Return the lock to hold while a job runs: two of a boundary would note the same turns."""
        return self._locks.setdefault(job.scope.boundary, asyncio.Lock())

    def prepare(
        self,
        refresh: Refresh,
        job: Job,
        tally: JobProgress,
        partition: int,
        limits: RefreshLimits,
        is_over: Callable[[], bool] = lambda: False,
    ) -> RefreshRun:
        """Return a job that is to run within these limits, and until `is_over`, under its `lock`."""
        return RefreshRun(job, tally, refresh, partition, self._ctx, self._turns, limits, is_over)
