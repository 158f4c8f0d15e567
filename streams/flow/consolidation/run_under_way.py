"""One consolidation that is under way: what it has done so far, what it may still take, and whom it tells."""

import asyncio
from collections.abc import Callable, Sequence

from pydantic import BaseModel

from agents.consolidation.consolidate import RunLimits
from agents.ports.consolidation_run import ConsolidationRun
from schemas.consolidation import Consolidated, Difference, ModeCounts
from schemas.jobs import JobProgress
from streams.flow.requests.events import event_out
from streams.flow.support.awaiting import await_all
from streams.flow.worker_context import WorkerContext

OUT_OF_TIME = "the time of one run is over; the next one goes on"
"""Why something is left."""

PLANNING_TIME_SHARE = 0.5
"""Of the time that is left, what may be taken to look for clusters: the other half is to write what was found."""

MAX_DIFF_CHARS = 160
"""Characters of a text in a difference."""

RUN_POLL_INTERVAL_S = 0.05
"""Between two looks at what became of something."""


class RunProgress:
    """One run, and what it may take (`agents.ports.consolidation_run.Allowance`). `tally` is what `health` shows of it."""

    def __init__(self, run: ConsolidationRun, bounds: RunLimits, tally: JobProgress, ctx: WorkerContext) -> None:
        self.run, self.tally, self.ctx = run, tally, ctx
        self.created: list[str] = []
        self.superseded: list[str] = []
        self.modes: dict[str, ModeCounts] = {}
        self.diff: list[Difference] = []
        self.left: dict[str, str] = {}
        """By mode the digest of the turns among which nothing more is found."""
        self.tokens_left = bounds.tokens
        self.unfinished = ""
        """Why something is left for the next run."""
        self._ends_at = asyncio.get_running_loop().time() + bounds.seconds

    def count(self, mode: str, **more: int) -> None:
        """Count what was done in a mode."""
        counts = self.modes.get(mode, ModeCounts())
        self.modes[mode] = counts.model_copy(
            update={name: getattr(counts, name) + number for name, number in more.items()}
        )

    def is_over(self) -> bool:
        """Whether its time is over."""
        if asyncio.get_running_loop().time() > self._ends_at:
            self.unfinished = OUT_OF_TIME
            return True
        return False

    def may_spend(self, tokens: int) -> bool:
        """Whether so many tokens of language models may still be asked for."""
        if tokens > self.tokens_left:
            self.unfinished = "the tokens of one run are spent; the next one goes on"
            return False
        return True

    def spend(self, tokens: int) -> None:
        """Note that so many tokens were asked for."""
        self.tokens_left -= tokens

    def planning_deadline(self) -> Callable[[], bool]:
        """What says, in any thread, when to stop looking for clusters."""
        time = asyncio.get_running_loop().time
        until = time() + PLANNING_TIME_SHARE * (self._ends_at - time())
        return lambda: time() > until

    async def until(self, settled: Callable[[], bool], at_most_s: float = float("inf")) -> None:
        """Wait until something is settled, the partition has left, or so many seconds are over."""
        loop = asyncio.get_running_loop()
        wait_until = loop.time() + at_most_s
        while self.is_assigned() and loop.time() < wait_until and not settled():  # noqa: ASYNC110 - no event tells of it
            await asyncio.sleep(RUN_POLL_INTERVAL_S)

    def is_assigned(self) -> bool:
        """Whether the partition is still this worker's."""
        log = self.ctx.turns_log
        return log is None or log.is_assigned(self.run.partition)

    async def tell(self, events: Sequence[BaseModel], topic: str | None = None) -> None:
        """Publish events, in the partition of the run; returns when they are safe."""
        boundary = self.run.trigger.scope.boundary
        outs = [event_out(topic or self.ctx.topics.consolidated, boundary, event) for event in events]
        await await_all([await self.ctx.publisher.send(out) for out in outs])

    def done(self) -> Consolidated:
        """All that it did."""
        return Consolidated(
            run=self.run.run,
            scope=self.run.scope,
            at=self.run.at,
            created=tuple(self.created),
            superseded=tuple(self.superseded),
            modes=self.modes,
            diff=tuple(self.diff),
        )
