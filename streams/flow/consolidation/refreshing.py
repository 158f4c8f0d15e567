"""Have due turns of a consolidation's scope understood again, as the job `refresh` has, within the run's budget.

What is done is noted on the turns with the run's id: a run that a kill interrupts finds these notes, and counts once.
"""

from collections.abc import Iterator
from functools import partial as bound

from agents.ports.pipelines import State
from agents.rules.items.item_merging import ItemDiff
from agents.understanding.refresh import Refresh, RefreshLimits
from schemas.internal.changes import Job
from schemas.internal.consolidation import Difference, Operation, RefreshCounts
from schemas.moments import milliseconds_of
from streams.flow.consolidation.run_under_way import MAX_DIFF_CHARS, RunProgress
from streams.flow.steps.refresh import MAX_IDS
from streams.flow.steps.run_refreshes import RunRefreshes

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
    is_over = _nothing_more if progress.run.has_ended else progress.planning_deadline()
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


def _nothing_more() -> bool:
    """Ask for no turn."""
    return True


def _is_written(refresh: Refresh, diff: ItemDiff) -> bool:
    is_added = all(refresh.turn(memory_id) is not None for memory_id in diff.added)
    return is_added and all(refresh.turn(memory_id) is None for memory_id in diff.removed)


def _differences(refresh: Refresh, diff: ItemDiff) -> Iterator[Difference]:
    for op, ids in zip(OPERATIONS, diff, strict=True):
        for memory_id in ids[:MAX_IDS]:
            item = refresh.turn(memory_id)
            yield Difference(op=op, memory_id=memory_id, after=None if item is None else item.text[:MAX_DIFF_CHARS])
