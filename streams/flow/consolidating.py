"""Consolidations on their topic: each runs beside everything else, and is answered when all it did can be seen.

A run notes where its turns end before it does anything. One that was cut off by a kill comes again, over the same
turns, finds what it has made already, and goes on. The runs of one boundary come one after another. Nothing else is
noted on the way. What a run may take, in seconds and in tokens of a language model, is bounded: the rest is left for
the next, and the reply says so.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field

import numpy as np

from agents.consolidate import Consolidate, Run
from agents.rules.distilling import Source
from agents.rules.gathering import Gathered, gathered
from schemas.consolidation import Consolidated, Difference, Distilled, KeptRun, ModeCounts, Runs, Trigger
from schemas.failures import ModelMissing
from schemas.jobs import Job, Tally
from schemas.modes import VectorSpace
from schemas.moments import moment_of
from schemas.records import Record
from schemas.replies import Answer, Warned
from schemas.vectors import Matrix
from streams.batching import batches
from streams.flow.awaiting import all_of
from streams.flow.patience import until_available
from streams.flow.requests import Asked, Channel, Handled
from streams.flow.steps import Requested, event_out
from streams.flow.surroundings import Surroundings

PAGE = 200
"""Turns that are read, and vectors that are fetched, in one go: some 20 ms."""

CLUSTERS_AT_ONCE = 10
"""Clusters that the keeper is told of before the run looks what became of them."""

LOOK_EVERY_S = 0.05
"""Between two looks."""

LONGEST_WAIT_S = 10.0
"""How long turns are waited for whose vector is on its way: what was said just now takes part."""

AT_ONCE = 2
"""Runs of one worker at the same time: each may take a core while it plans."""

KEPT_RUNS = 8
"""Runs of a scope that are remembered: those that may come again after a kill, and the last one."""

SHOWN = 160
"""Characters of a text in a difference."""


class RunConsolidations(Requested):
    """Distils what was said again and again in a scope into one memory each."""

    window = 64

    def __init__(self, channel: Channel, consolidate: Consolidate, around: Surroundings) -> None:
        super().__init__(channel, self._handle, around)
        self._consolidate = consolidate
        self._around = around
        self._room = asyncio.Semaphore(AT_ONCE)
        self._turn: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def _handle(self, trigger: Trigger, record: Record, _asked: Asked) -> Handled:
        modes = self._consolidate.modes(trigger, record.partition)
        async with self._turn[trigger.scope.boundary], self._room:
            run, safe = self._begun(trigger, record)
            await all_of(safe)
            job = Job(scope=trigger.scope, job_id=run.run, kind="consolidate", mode=trigger.mode, started_at=run.at)
            with self._around.jobs.running(job) as tally:
                running = Running(run, self._consolidate, tally, self._around)
                # Whoever has the partition now is given the trigger again, and answers it.
                if (done := await running.to_its_end(modes)) is None:
                    return Handled(None)
        warnings = (Warned("unfinished", running.unfinished),) if running.unfinished else ()
        return Handled(Answer(_shown(done), warnings))

    def _begun(self, trigger: Trigger, record: Record) -> tuple[Run, list[Awaitable[None]]]:
        """The run of a trigger: as it began the first time, or as it begins now, which is noted."""
        runs, partition = self._around.consolidations, record.partition
        scope, name = trigger.scope.model_dump(), f"{partition}-{record.offset}"
        before = runs.get(partition, scope)
        kept = before.find(name)
        if kept is None or kept.at != moment_of(record.timestamp_ms):
            until = self._around.words.applied(partition).get(self._around.topics.turns, 0)
            kept = KeptRun(run=name, until=until, at=moment_of(record.timestamp_ms))
            others = tuple(one for one in before.runs if one.run != name)
            runs.put(partition, scope, Runs(runs=(*others, kept)[-KEPT_RUNS:]))
        return Run(name, trigger, partition, kept.until, kept.at), runs.unwritten()


@dataclass(slots=True)
class Done:
    """What a run has done so far."""

    created: list[str] = field(default_factory=list)
    superseded: list[str] = field(default_factory=list)
    modes: dict[str, ModeCounts] = field(default_factory=dict)
    diff: list[Difference] = field(default_factory=list)


class Running:
    """One run."""

    def __init__(self, run: Run, consolidate: Consolidate, tally: Tally, around: Surroundings) -> None:
        self._run, self._consolidate, self._around = run, consolidate, around
        self._tally, self._tokens_left = tally, consolidate.bounds.tokens
        self._ends_at = asyncio.get_running_loop().time() + consolidate.bounds.seconds
        self._done = Done()
        self.unfinished = ""
        """Why something is left for the next run."""

    async def to_its_end(self, modes: Sequence[str]) -> Consolidated | None:
        """Go through these modes; None where the partition has left."""
        for mode in modes:
            self._done.modes[mode] = ModeCounts()
            try:
                await self._distil(mode, self._consolidate.space(self._run, mode))
            except ModelMissing as missing:
                self.unfinished = f"mode {mode!r}: {missing}"
            if not self._is_here():
                return None
        done = Consolidated(
            run=self._run.run,
            scope=self._run.trigger.scope,
            at=self._run.at,
            created=tuple(self._done.created),
            superseded=tuple(self._done.superseded),
            modes=self._done.modes,
            diff=tuple(self._done.diff),
        )
        await self._tell([done])
        return done

    async def _distil(self, mode: str, space: VectorSpace) -> None:
        sources, vectors = await self._vectors(space, await self._sources(mode, space))
        self._count(mode, turns=len(sources))
        # Off the event loop: it takes some seconds for fifty thousand turns.
        found = await asyncio.to_thread(gathered, sources, vectors)
        self._tally.total += len(found)
        for number, some in enumerate(batches(found, CLUSTERS_AT_ONCE)):
            if not self._is_here():
                return
            if self._is_spent(some):
                self._count(mode, left=len(found) - number * CLUSTERS_AT_ONCE)
                return
            await self._written(mode, some)

    async def _sources(self, mode: str, space: VectorSpace) -> list[Source]:
        """The turns that take part, once those have their vector that are about to get it."""
        loop = asyncio.get_running_loop()
        wait_until = loop.time() + LONGEST_WAIT_S
        while True:
            sources, waiting = await self._read(mode, space)
            if not waiting or loop.time() > wait_until or not self._is_here():
                self._count(mode, waiting=waiting)
                return sources
            await asyncio.sleep(LOOK_EVERY_S)

    async def _read(self, mode: str, space: VectorSpace) -> tuple[list[Source], int]:
        sources: list[Source] = []
        waiting = 0
        for page in batches(self._consolidate.turns(self._run, mode), PAGE):
            read = self._consolidate.read(self._run, space, page)
            sources += read.sources
            waiting += read.waiting
            await asyncio.sleep(0)
        return sources, waiting

    async def _vectors(self, space: VectorSpace, sources: Sequence[Source]) -> tuple[list[Source], Matrix]:
        there: list[Source] = []
        rows = [np.zeros((0, space.fingerprint.dim), np.float32)]
        for page in batches(sources, PAGE):

            def fetch(page: Sequence[Source] = page) -> Awaitable[tuple[list[Source], Matrix]]:
                return self._consolidate.vectors(space, page)

            some, vectors = await until_available(fetch, "vector index", self._around.meters)
            there += some
            rows.append(vectors)
        return there, np.concatenate(rows)

    async def _written(self, mode: str, clusters: Sequence[Gathered]) -> None:
        """Have what some clusters give written, and count what became of them."""
        due = [cluster for cluster in clusters if self._consolidate.standing(self._run, mode, cluster) == "due"]
        written = [await self._consolidate.distilled(self._run, mode, cluster) for cluster in due]
        self._tokens_left -= sum(one.told.tokens for one in written)
        await self._tell([one.event for one in written])
        await self._settled([one.event for one in written])
        self._count(mode, clusters=len(clusters), by_model=sum(one.told.by_model for one in written))
        for cluster in clusters:
            self._note(mode, cluster)

    def _note(self, mode: str, cluster: Gathered) -> None:
        """Count a cluster that was distilled by this run, now or before it was cut off."""
        if self._consolidate.standing(self._run, mode, cluster) != "done":
            self._tally.skipped += 1
            return
        self._tally.processed += 1
        memory_id = self._consolidate.memory_id(self._run, mode, cluster)
        self._done.created.append(memory_id)
        self._done.superseded += [source.memory_id for source in cluster.sources]
        self._count(mode, created=1, superseded=len(cluster.sources))
        memory = self._around.memories.get(self._run.partition, memory_id)
        before, after = f"{len(cluster.sources)} turns", None if memory is None else memory.text[:SHOWN]
        self._done.diff.append(Difference(op="distil", memory_id=memory_id, before=before, after=after))

    async def _settled(self, events: Sequence[Distilled]) -> None:
        """Wait until the keeper has written or refused what it was told."""
        while True:
            due = any(self._consolidate.became(self._run, event) == "due" for event in events)
            if not due or not self._is_here():
                return
            await asyncio.sleep(LOOK_EVERY_S)

    def _is_spent(self, clusters: Sequence[Gathered]) -> bool:
        """Whether these clusters are to be left for the next run."""
        if asyncio.get_running_loop().time() > self._ends_at:
            self.unfinished = "the time of one run is over; the next one goes on"
        elif sum(self._consolidate.expected_tokens(cluster) for cluster in clusters) > self._tokens_left:
            self.unfinished = "the tokens of one run are spent; the next one goes on"
        return bool(self.unfinished)

    async def _tell(self, events: Sequence[Distilled | Consolidated]) -> None:
        topic, boundary = self._around.topics.consolidated, self._run.trigger.scope.boundary
        await all_of([await self._around.publisher.send(event_out(topic, boundary, event)) for event in events])

    def _count(self, mode: str, **more: int) -> None:
        counts = self._done.modes[mode]
        self._done.modes[mode] = counts.model_copy(
            update={name: getattr(counts, name) + number for name, number in more.items()}
        )

    def _is_here(self) -> bool:
        log = self._around.turns_log
        return log is None or log.is_here(self._run.partition)


def _shown(done: Consolidated) -> dict[str, object]:
    """What a trigger is answered with."""
    shown: dict[str, object] = done.model_dump(mode="json", include={"run", "created", "superseded", "modes", "diff"})
    return shown
