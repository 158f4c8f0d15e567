"""Consolidations on their topic: each runs in the background and is answered when its effects are visible.

A run stores the end offset of its turns first. A run that a crash interrupted is redelivered: over the same turns it
finds its earlier results and continues. One that had ended is answered again and changes nothing: memories may have
been forgotten since. Runs of one boundary are sequential. Seconds and language model tokens of a run are limited: the
next run continues, and the reply says so.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from functools import partial as bound
from weakref import WeakValueDictionary

from agents.categories.categorize import Categorize
from agents.consolidation.consolidate import Consolidate
from agents.intentions.adjust import AdjustIntention
from agents.ports.commands import ConsolidationRun
from agents.ports.pipelines import State
from agents.rules.items.item_merging import ItemDiff
from agents.understanding.refresh import Refresh, RefreshLimits
from schemas.failures import ModelMissing
from schemas.internal.changes import Job
from schemas.internal.consolidation import (
    ConsolidationTrigger,
    Difference,
    ModeCounts,
    Operation,
    RefreshCounts,
    RunHistory,
    StoredRun,
)
from schemas.messages.records import Record
from schemas.messages.replies import ReplyWarning, SuccessReply
from schemas.moments import milliseconds_of, moment_of
from streams.flow.consolidation.evolving import MAX_DIFF_CHARS, Deduplication, ModeDistillation, RunProgress
from streams.flow.publisher import await_all
from streams.flow.requests.channel import HandlerResult, ReplyOptions
from streams.flow.steps.refresh import MAX_IDS, RunRefreshes
from streams.flow.worker_context import WorkerContext

# Have due turns of a consolidation's scope understood again, as the job `refresh` has, within the run's budget.
#
# What is done is noted on the turns with the run's id: a run that a kill interrupts finds these notes, and counts once.

MAX_ITEM_WAIT_S = 2.0
"""Maximum wait for the items of the last answers: a turn has its note when the first of them is written."""

OPERATIONS: tuple[Operation, ...] = ("add_item", "remove_item", "change_item")
"""The operations of the fields of an `ItemDiff`."""


async def refresh_items(progress: RunProgress, refreshes: RunRefreshes, refresh: Refresh, _state: State) -> None:
    """Have turns understood again, in at most half of the run's time, and report the items that changed.

    A run that had ended reports what it did, and asks for nothing more.
    """
    # The job by which the turns of this run are noted; a recreated topic numbers its runs anew.
    run = progress.run
    job, partition = (
        Job(
            scope=run.trigger.scope,
            job_id=f"consolidate-{run.run}-{milliseconds_of(run.at)}",
            kind="refresh",
            mode=run.trigger.mode,
            all_projects=False,
            started_at=run.at,
        ),
        progress.run.partition,
    )
    # After its end it asks for no turn more.
    is_over = (lambda: True) if progress.run.has_ended else progress.planning_deadline()
    async with progress.not_counting(refreshes.lock(job)):
        limits = refresh.run_limits
        running = refreshes.prepare(
            refresh,
            job,
            progress.tally,
            partition,
            RefreshLimits(limits.calls, min(limits.tokens, progress.tokens_left)),
            is_over,
        )
        if not await running.run_to_end():
            return
        diff = running.diff()
        await progress.until(bound(_is_written, refresh, diff), MAX_ITEM_WAIT_S)
    progress.spend(running.tokens)
    progress.refreshed = RefreshCounts(**running.counts())
    progress.diff += _differences(refresh, diff)
    progress.unfinished = running.unfinished


MAX_CONCURRENT_RUNS = 2
"""Runs of one worker at the same time: each may take a core while it plans."""

MAX_KEPT_RUNS = 8
"""Stored runs of a scope: those that may be redelivered after a crash, and the last one."""


class RunConsolidations:
    """Handles `consolidate.v1`: summarises clusters of a scope, deduplicates its items, refreshes its categories.

    Then it adjusts the intention.
    """

    def __init__(
        self,
        consolidate_at: Callable[[int], Consolidate],
        categorize_at: Callable[[int], Categorize],
        adjust_intention_at: Callable[[int], AdjustIntention],
        refreshes: RunRefreshes,
        ctx: WorkerContext,
    ) -> None:
        self._refreshes = refreshes
        self._consolidate_at = consolidate_at
        self._categorize_at = categorize_at
        self._adjust_intention_at = adjust_intention_at
        self._ctx = ctx
        self._room = asyncio.Semaphore(MAX_CONCURRENT_RUNS)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def __call__(self, trigger: ConsolidationTrigger, record: Record, _options: ReplyOptions) -> HandlerResult:
        """Run the consolidation as far as its limits allow."""
        consolidate = self._consolidate_at(record.partition)
        refresh, active = self._refreshes.at(record.partition), consolidate.pipelines
        modes = consolidate.modes(trigger)
        async with self._locks.setdefault(trigger.scope.boundary, asyncio.Lock()):
            runs, partition = self._ctx.consolidations, record.partition
            scope, name = trigger.scope.model_dump(), f"{partition}-{record.offset}"
            before, at = runs.get(partition, scope), moment_of(record.timestamp_ms)
            stored = before.find(name)
            # A recreated topic starts at offset 0 again.
            if stored is None or stored.at != at:
                until = self._ctx.progress.next_offset(partition, trigger.scope.boundary) or 0
                stored = StoredRun(run=name, until=until, at=at)
                others = tuple(past_run for past_run in before.runs if past_run.run != name)
                runs.put(partition, scope, RunHistory(runs=(*others, stored)[-MAX_KEPT_RUNS:]))
            run = ConsolidationRun(name, trigger, partition, stored.until, stored.at, stored.has_ended)
            await await_all(runs.pending_writes())
            job = Job(
                scope=trigger.scope,
                job_id=f"consolidate-{run.run}",
                kind="consolidate",
                mode=trigger.mode,
                started_at=run.at,
            )
            with self._ctx.jobs.running(job) as tally:
                progress = RunProgress(run, consolidate.bounds, tally, self._ctx)
                state: State = {"scope": run.scope, "run": run.run}
                await active.run(
                    {"evolve.refresh_items": partial(refresh_items, progress, self._refreshes, refresh)}, state
                )
                async with progress.not_counting(self._room):
                    await self._carry_out(progress, modes, consolidate, state)
        if not progress.is_assigned():
            # The worker that has the partition now gets the trigger again, and answers it.
            return HandlerResult(None)
        # Before the answer: after a kill the next worker's index has what the run has written.
        await self._ctx.commit.commit([record.partition], is_hurried=True)
        done = progress.done()
        await active.run({"evolve.emit_diff": lambda _: progress.publish([done])}, state)
        warnings = (ReplyWarning("unfinished", progress.unfinished),) if progress.unfinished else ()
        shown = {"run", "created", "superseded", "modes", "refreshed", "diff"}
        body: dict[str, object] = done.model_dump(mode="json", include=shown)
        return HandlerResult(SuccessReply(body, warnings), pending_writes=self._end_run(progress))

    async def _carry_out(
        self, progress: RunProgress, modes: Sequence[str], consolidate: Consolidate, state: State
    ) -> None:
        active = consolidate.pipelines
        for mode in modes:
            progress.modes[mode] = ModeCounts()
            # Turns are selected for it alone, and to wait for their vectors takes time.
            if not active.is_on("evolve.summarise"):
                continue
            try:
                space = consolidate.space(progress.run, mode)
            except ModelMissing as missing:
                progress.unfinished = f"mode {mode!r}: {missing}"
                continue
            distillation = ModeDistillation(mode, space, consolidate, progress)
            steps = {"evolve.select": distillation.select, "evolve.summarise": distillation.summarise}
            await active.run(steps, {**state})
        if progress.run.has_ended:
            return
        deduplication = Deduplication(consolidate.evolve, progress)
        categorize = self._categorize_at(progress.run.partition)
        await active.run(
            {
                "evolve.merge": lambda _: deduplication.deduplicate(modes),
                "evolve.recluster": lambda _: deduplication.refresh_categories(categorize),
                "evolve.adjust_intention": lambda _: self._adjust_intention(progress),
            },
            state,
        )

    async def _adjust_intention(self, progress: RunProgress) -> None:
        """Find what of the intention is done. A model reads the turns that no earlier run has shown it."""
        if progress.is_over() or not progress.is_assigned():
            return
        run, agent = progress.run, self._adjust_intention_at(progress.run.partition)
        runs = self._ctx.consolidations.get(run.partition, run.scope).runs
        since = max((past_run.adjusted for past_run in runs), default=0)
        progress.diff += agent.by_rules(run)
        by_model = await agent.by_model(run, since, progress)
        progress.diff += by_model or []
        progress.adjusted = since if by_model is None else run.until
        await await_all(self._ctx.stores.intentions.pending_writes())

    def _end_run(self, progress: RunProgress) -> list[Awaitable[None]]:
        """Store that the run has ended, and the digests of remaining turns: the next run skips unchanged modes."""
        runs, run = self._ctx.consolidations, progress.run
        if run.has_ended:
            return []
        history, ended = (
            runs.get(run.partition, run.scope),
            {"left": progress.left, "adjusted": progress.adjusted, "has_ended": True},
        )
        after = tuple(
            past_run.model_copy(update=ended) if past_run.run == run.run else past_run for past_run in history.runs
        )
        runs.put(run.partition, run.scope, RunHistory(runs=after))
        return runs.pending_writes()


def _is_written(refresh: Refresh, diff: ItemDiff) -> bool:
    is_added = all(refresh.turn(memory_id) is not None for memory_id in diff.added)
    return is_added and all(refresh.turn(memory_id) is None for memory_id in diff.removed)


def _differences(refresh: Refresh, diff: ItemDiff) -> Iterator[Difference]:
    for op, ids in zip(OPERATIONS, diff, strict=True):
        for memory_id in ids[:MAX_IDS]:
            item = refresh.turn(memory_id)
            yield Difference(op=op, memory_id=memory_id, after=None if item is None else item.text[:MAX_DIFF_CHARS])
