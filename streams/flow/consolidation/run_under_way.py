"""The progress of one consolidation run: its results so far, its remaining budget, and its events."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from pydantic import BaseModel

from agents.consolidation.consolidate import RunLimits
from agents.ports.commands import ConsolidationRun
from schemas.internal.changes import JobProgress
from schemas.internal.consolidation import Consolidated, Difference, ModeCounts, RefreshCounts
from streams.flow.publisher import await_all
from streams.flow.requests.events import event_out
from streams.flow.worker_context import WorkerContext

OUT_OF_TIME = "the time limit of one run is reached; the next run continues"
"""Reason of an unfinished run."""

PLANNING_TIME_SHARE = 0.5
"""Share of the remaining time for understanding turns again, then for the search of clusters; the rest is for what
follows: writing them."""

MAX_DIFF_CHARS = 160
"""Characters of a text in a difference."""

RUN_POLL_INTERVAL_S = 0.05
"""Between two checks whether events have been applied."""


class RunProgress:
    """One run with its budget (`agents.ports.commands.Allowance`). `health` shows `tally`."""

    def __init__(self, run: ConsolidationRun, bounds: RunLimits, tally: JobProgress, ctx: WorkerContext) -> None:
        self.run, self.tally, self.ctx = run, tally, ctx
        self.created: list[str] = []
        self.superseded: list[str] = []
        self.modes: dict[str, ModeCounts] = {}
        self.diff: list[Difference] = []
        self.refreshed: RefreshCounts | None = None
        self.left: dict[str, str] = {}
        """By mode, the digest of the turns in which no cluster is left."""
        self.adjusted = 0
        """The offset before which all turns were read for the intention."""
        self.tokens_left = bounds.tokens
        self.unfinished = ""
        """Reason why the next run must continue; empty if this one is complete."""
        self._ends_at = asyncio.get_running_loop().time() + bounds.seconds

    def count(self, mode: str, **more: int) -> None:
        counts = self.modes.get(mode, ModeCounts())
        self.modes[mode] = counts.model_copy(
            update={name: getattr(counts, name) + number for name, number in more.items()}
        )

    @asynccontextmanager
    async def not_counting(self, room: AbstractAsyncContextManager[Any]) -> AsyncIterator[None]:
        """Enter `room`; the wait for it does not count as time of the run."""
        began = asyncio.get_running_loop().time()
        async with room:
            self._ends_at += asyncio.get_running_loop().time() - began
            yield

    def is_over(self) -> bool:
        """True if the time limit is reached."""
        if asyncio.get_running_loop().time() > self._ends_at:
            self.unfinished = OUT_OF_TIME
            return True
        return False

    def may_spend(self, tokens: int) -> bool:
        """True if the budget still allows this number of language model tokens."""
        if tokens > self.tokens_left:
            self.unfinished = "the token limit of one run is reached; the next run continues"
            return False
        return True

    def spend(self, tokens: int) -> None:
        """Subtract used tokens from the budget."""
        self.tokens_left -= tokens

    def planning_deadline(self) -> Callable[[], bool]:
        """Return a function, callable in any thread, that is true when half of the remaining time is over."""
        time = asyncio.get_running_loop().time
        until = time() + PLANNING_TIME_SHARE * (self._ends_at - time())
        return lambda: time() > until

    async def until(self, settled: Callable[[], bool], at_most_s: float = float("inf")) -> None:
        """Wait until `settled` is true, the partition has left, or `at_most_s` seconds are over."""
        loop = asyncio.get_running_loop()
        wait_until = loop.time() + at_most_s
        while self.is_assigned() and loop.time() < wait_until and not settled():  # noqa: ASYNC110 - no event tells of it
            await asyncio.sleep(RUN_POLL_INTERVAL_S)

    def is_assigned(self) -> bool:
        """True if the partition is still assigned to this worker."""
        return self.ctx.is_assigned(self.run.partition)

    async def publish(self, events: Sequence[BaseModel], topic: str | None = None) -> None:
        """Publish events, in the partition of the run; returns when the broker has them."""
        boundary = self.run.trigger.scope.boundary
        outs = [event_out(topic or self.ctx.topics.consolidated, boundary, event) for event in events]
        await await_all([await self.ctx.publisher.send(out) for out in outs])

    def done(self) -> Consolidated:
        """Return the event that sums up the run."""
        return Consolidated(
            run=self.run.run,
            scope=self.run.scope,
            at=self.run.at,
            created=tuple(self.created),
            superseded=tuple(self.superseded),
            modes=self.modes,
            refreshed=self.refreshed,
            diff=tuple(self.diff),
        )
