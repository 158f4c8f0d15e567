"""Consolidations on their topic: each runs beside everything else, and is answered when all it did can be seen.

A run notes where its turns end before it does anything. One that was cut off by a kill comes again, over the same
turns, finds what it has made already, and goes on. The runs of one boundary come one after another. Nothing else is
noted on the way. What a run may take, in seconds and in tokens of a language model, is bounded: the rest is left for
the next, and the reply says so.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence

from agents.categories.categorize import Categorize
from agents.consolidation.consolidate import Consolidate
from agents.ports.consolidation_run import ConsolidationRun
from schemas.consolidation import Consolidated, ConsolidationTrigger, ModeCounts, RunHistory, StoredRun
from schemas.failures import ModelMissing
from schemas.jobs import Job
from schemas.moments import moment_of
from schemas.records import Record
from schemas.replies import ReplyWarning, SuccessReply
from streams.flow.consolidation.deduplicating import Deduplication
from streams.flow.consolidation.run_under_way import RunProgress
from streams.flow.consolidation.summarising import ModeDistillation
from streams.flow.requests.channel import HandlerResult, ReplyOptions
from streams.flow.support.awaiting import await_all
from streams.flow.worker_context import WorkerContext

MAX_CONCURRENT_RUNS = 2
"""Runs of one worker at the same time: each may take a core while it plans."""

MAX_KEPT_RUNS = 8
"""Runs of a scope that are remembered: those that may come again after a kill, and the last one."""


class RunConsolidations:
    """Handles `consolidate.v1`: summarises clusters of a scope, deduplicates its items and refreshes its categories."""

    def __init__(
        self,
        consolidate_at: Callable[[int], Consolidate],
        categorize_at: Callable[[int], Categorize],
        ctx: WorkerContext,
    ) -> None:
        """Take the agents by partition."""
        self._consolidate_at = consolidate_at
        self._categorize_at = categorize_at
        self._ctx = ctx
        self._room = asyncio.Semaphore(MAX_CONCURRENT_RUNS)
        self._turn: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def __call__(self, trigger: ConsolidationTrigger, record: Record, _options: ReplyOptions) -> HandlerResult:
        """Run the consolidation as far as its limits allow."""
        consolidate = self._consolidate_at(record.partition)
        modes = consolidate.modes(trigger)
        async with self._turn[trigger.scope.boundary], self._room:
            run, safe = self._begun(trigger, record)
            await await_all(safe)
            job = Job(scope=trigger.scope, job_id=run.run, kind="consolidate", mode=trigger.mode, started_at=run.at)
            with self._ctx.jobs.running(job) as tally:
                under_way = RunProgress(run, consolidate.bounds, tally, self._ctx)
                await self._carry_out(under_way, modes, consolidate)
        if not under_way.is_assigned():
            # The worker that has the partition now gets the trigger again, and answers it.
            return HandlerResult(None)
        done = under_way.done()
        await under_way.tell([done])
        warnings = (ReplyWarning("unfinished", under_way.unfinished),) if under_way.unfinished else ()
        return HandlerResult(SuccessReply(_shown(done), warnings), pending_writes=self._ended(under_way))

    async def _carry_out(self, under_way: RunProgress, modes: Sequence[str], consolidate: Consolidate) -> None:
        for mode in modes:
            under_way.modes[mode] = ModeCounts()
            try:
                space = consolidate.space(under_way.run, mode)
            except ModelMissing as missing:
                under_way.unfinished = f"mode {mode!r}: {missing}"
            else:
                await ModeDistillation(mode, space, consolidate, under_way).run_to_end()
        evolving = Deduplication(consolidate.evolve, under_way)
        for mode in modes:
            await evolving.deduplicate_mode(mode)
        evolving.report_merged_entries()
        await evolving.refresh_categories(self._categorize_at(under_way.run.partition))

    def _begun(self, trigger: ConsolidationTrigger, record: Record) -> tuple[ConsolidationRun, list[Awaitable[None]]]:
        """The run of a trigger: as it began the first time, or as it begins now, which is noted."""
        runs, partition = self._ctx.consolidations, record.partition
        scope, name = trigger.scope.model_dump(), f"{partition}-{record.offset}"
        before, at = runs.get(partition, scope), moment_of(record.timestamp_ms)
        kept = before.find(name)
        # A topic that was made anew counts from 0 again.
        if kept is None or kept.at != at:
            until = self._ctx.commit.applied(partition, self._ctx.topics.turns)
            kept = StoredRun(run=name, until=until, at=at)
            others = tuple(one for one in before.runs if one.run != name)
            runs.put(partition, scope, RunHistory(runs=(*others, kept)[-MAX_KEPT_RUNS:]))
        return ConsolidationRun(name, trigger, partition, kept.until, kept.at), runs.pending_writes()

    def _ended(self, under_way: RunProgress) -> list[Awaitable[None]]:
        """Note what the run has left, so that the next looks only where something is new."""
        runs, run = self._ctx.consolidations, under_way.run
        noted = runs.get(run.partition, run.scope)
        after = tuple(
            one.model_copy(update={"left": under_way.left}) if one.run == run.run else one for one in noted.runs
        )
        runs.put(run.partition, run.scope, RunHistory(runs=after))
        return runs.pending_writes()


def _shown(done: Consolidated) -> dict[str, object]:
    """What a trigger is answered with."""
    shown: dict[str, object] = done.model_dump(mode="json", include={"run", "created", "superseded", "modes", "diff"})
    return shown
