"""Consolidations on their topic: each runs beside everything else, and is answered when all it did can be seen.

A run notes where its turns end before it does anything. One that was cut off by a kill comes again, over the same
turns, finds what it has made already, and goes on. The runs of one boundary come one after another. Nothing else is
noted on the way. What a run may take, in seconds and in tokens of a language model, is bounded: the rest is left for
the next, and the reply says so.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Sequence

from agents.categories.categorize import Categorize
from agents.consolidation.consolidate import Consolidate
from agents.ports.consolidation_run import ConsolidationRun
from schemas.consolidation import Consolidated, ConsolidationTrigger, ModeCounts, RunHistory, StoredRun
from schemas.failures import ModelMissing
from schemas.jobs import Job
from schemas.moments import moment_of
from schemas.records import Record
from schemas.replies import SuccessReply, Warned
from streams.flow.consolidation.deduplicating import Evolving
from streams.flow.consolidation.run_under_way import UnderWay
from streams.flow.consolidation.summarising import Distilling
from streams.flow.requests.pipeline import Asked, Channel, Handled
from streams.flow.steps.step import Requested
from streams.flow.support.awaiting import all_of
from streams.flow.worker_context import Surroundings

AT_ONCE = 2
"""Runs of one worker at the same time: each may take a core while it plans."""

KEPT_RUNS = 8
"""Runs of a scope that are remembered: those that may come again after a kill, and the last one."""


class RunConsolidations(Requested):
    """Distils what was said again and again in a scope into one memory each, and lets the rest of it evolve."""

    window = 64

    def __init__(
        self, channel: Channel, consolidate: Consolidate, categorize: Categorize, around: Surroundings
    ) -> None:
        super().__init__(channel, self._handle, around)
        self._consolidate = consolidate
        self._categorize = categorize
        self._around = around
        self._room = asyncio.Semaphore(AT_ONCE)
        self._turn: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def _handle(self, trigger: ConsolidationTrigger, record: Record, _asked: Asked) -> Handled:
        modes = self._consolidate.modes(trigger, record.partition)
        async with self._turn[trigger.scope.boundary], self._room:
            run, safe = self._begun(trigger, record)
            await all_of(safe)
            job = Job(scope=trigger.scope, job_id=run.run, kind="consolidate", mode=trigger.mode, started_at=run.at)
            with self._around.jobs.running(job) as tally:
                under_way = UnderWay(run, self._consolidate.bounds, tally, self._around)
                await self._carry_out(under_way, modes)
        if not under_way.is_here():
            # Whoever has the partition now is given the trigger again, and answers it.
            return Handled(None)
        done = under_way.done()
        await under_way.tell([done])
        warnings = (Warned("unfinished", under_way.unfinished),) if under_way.unfinished else ()
        return Handled(SuccessReply(_shown(done), warnings), safe=self._ended(under_way))

    async def _carry_out(self, under_way: UnderWay, modes: Sequence[str]) -> None:
        for mode in modes:
            under_way.modes[mode] = ModeCounts()
            try:
                space = self._consolidate.space(under_way.run, mode)
            except ModelMissing as missing:
                under_way.unfinished = f"mode {mode!r}: {missing}"
            else:
                await Distilling(mode, space, self._consolidate, under_way).to_its_end()
        evolving = Evolving(self._consolidate.evolve, under_way)
        for mode in modes:
            await evolving.of_mode(mode)
        evolving.of_intention()
        await evolving.of_categories(self._categorize)

    def _begun(self, trigger: ConsolidationTrigger, record: Record) -> tuple[ConsolidationRun, list[Awaitable[None]]]:
        """The run of a trigger: as it began the first time, or as it begins now, which is noted."""
        runs, partition = self._around.consolidations, record.partition
        scope, name = trigger.scope.model_dump(), f"{partition}-{record.offset}"
        before, at = runs.get(partition, scope), moment_of(record.timestamp_ms)
        kept = before.find(name)
        # A topic that was made anew counts from 0 again.
        if kept is None or kept.at != at:
            until = self._around.words.applied(partition).get(self._around.topics.turns, 0)
            kept = StoredRun(run=name, until=until, at=at)
            others = tuple(one for one in before.runs if one.run != name)
            runs.put(partition, scope, RunHistory(runs=(*others, kept)[-KEPT_RUNS:]))
        return ConsolidationRun(name, trigger, partition, kept.until, kept.at), runs.unwritten()

    def _ended(self, under_way: UnderWay) -> list[Awaitable[None]]:
        """Note what the run has left, so that the next looks only where something is new."""
        runs, run = self._around.consolidations, under_way.run
        noted = runs.get(run.partition, run.scope)
        after = tuple(
            one.model_copy(update={"left": under_way.left}) if one.run == run.run else one for one in noted.runs
        )
        runs.put(run.partition, run.scope, RunHistory(runs=after))
        return runs.unwritten()


def _shown(done: Consolidated) -> dict[str, object]:
    """What a trigger is answered with."""
    shown: dict[str, object] = done.model_dump(mode="json", include={"run", "created", "superseded", "modes", "diff"})
    return shown
