"""What a consolidation distils in one mode: turns in, a few clusters at a time written by the keeper and counted."""

import asyncio
from collections.abc import Awaitable, Sequence

import numpy as np

from agents.consolidation.consolidate import Consolidate
from agents.rules.clustering.clustering import StopCondition
from agents.rules.consolidation.candidates import TurnCluster, cluster_turns, digest_sources
from agents.rules.consolidation.distillation import Source
from schemas.consolidation import Difference, Distilled
from schemas.modes import VectorSpace
from schemas.vectors import Matrix
from streams.batching import batches
from streams.flow.consolidation import run_under_way
from streams.flow.consolidation.run_under_way import MAX_DIFF_CHARS, OUT_OF_TIME, RunProgress
from streams.flow.support.backoff import until_available

TURN_PAGE_SIZE = 200
"""Turns that are read, and vectors that are fetched, in one go: some 20 ms."""

CLUSTER_BATCH_SIZE = 10
"""Clusters that the keeper is told of before the run looks what became of them."""

MAX_VECTOR_WAIT_S = 10.0
"""How long turns are waited for whose vector is on its way: what was said just now takes part."""


class ModeDistillation:
    """Distils the turns of one mode in one run."""

    def __init__(self, mode: str, space: VectorSpace, consolidate: Consolidate, under_way: RunProgress) -> None:
        self._mode, self._space = mode, space
        self._consolidate, self._under_way = consolidate, under_way
        self._run = under_way.run

    async def run_to_end(self) -> None:
        """Distil all that is to be, as far as the run may go."""
        sources, vectors = await self._vectors(await self._sources())
        self._under_way.count(self._mode, turns=len(sources))
        digest = await self._digest(sources)
        enough = self._under_way.planning_deadline()
        found = await self._gathered(sources, vectors, digest, enough)
        self._under_way.tally.total += len(found)
        for number, some in enumerate(batches(found, CLUSTER_BATCH_SIZE)):
            if not self._under_way.is_assigned():
                return
            if self._under_way.is_over() or not self._under_way.may_spend(self._expected_tokens(some)):
                self._under_way.count(self._mode, left=len(found) - number * CLUSTER_BATCH_SIZE)
                return
            await self._written(some)
        if enough():
            self._under_way.unfinished = OUT_OF_TIME
            return
        taken = {source.memory_id for cluster in found for source in cluster.sources}
        left = [source for source in sources if source.memory_id not in taken]
        self._under_way.left[self._mode] = await self._digest(left)

    async def _gathered(
        self, sources: Sequence[Source], vectors: Matrix, digest: str, enough: StopCondition
    ) -> list[TurnCluster]:
        """The clusters, sought off the event loop: it takes ten seconds and more for fifty thousand turns."""
        runs = self._under_way.ctx.consolidations.get(self._run.partition, self._run.scope)
        if runs.has_looked_at(self._mode, digest):
            return []
        return await asyncio.to_thread(cluster_turns, sources, vectors, enough)

    async def _digest(self, sources: Sequence[Source]) -> str:
        """Off the event loop, too: of many it takes longer than a question may wait."""
        return await asyncio.to_thread(digest_sources, sources, self._space.fingerprint.digest)

    async def _sources(self) -> list[Source]:
        """The turns that take part, once those have their vector that are about to get it."""
        loop = asyncio.get_running_loop()
        wait_until = loop.time() + MAX_VECTOR_WAIT_S
        while True:
            sources, waiting = await self._read()
            if not waiting or loop.time() > wait_until or not self._under_way.is_assigned():
                self._under_way.count(self._mode, waiting=waiting)
                return sources
            await asyncio.sleep(run_under_way.RUN_POLL_INTERVAL_S)

    async def _read(self) -> tuple[list[Source], int]:
        sources: list[Source] = []
        waiting = 0
        for page in batches(self._consolidate.turns(self._run, self._mode), TURN_PAGE_SIZE):
            read = self._consolidate.read_turns(self._run, self._space, page)
            sources += read.sources
            waiting += read.waiting
            await asyncio.sleep(0)
        return sources, waiting

    async def _vectors(self, sources: Sequence[Source]) -> tuple[list[Source], Matrix]:
        there: list[Source] = []
        rows = [np.zeros((0, self._space.fingerprint.dim), np.float32)]
        for page in batches(sources, TURN_PAGE_SIZE):

            def fetch(page: Sequence[Source] = page) -> Awaitable[tuple[list[Source], Matrix]]:
                return self._consolidate.vectors(self._space, page)

            some, vectors = await until_available(fetch, "vector index", self._under_way.ctx.meters)
            there += some
            rows.append(vectors)
        return there, np.concatenate(rows)

    def _expected_tokens(self, clusters: Sequence[TurnCluster]) -> int:
        return sum(self._consolidate.expected_tokens(cluster) for cluster in clusters)

    async def _written(self, clusters: Sequence[TurnCluster]) -> None:
        """Have what some clusters give written, and count what became of them."""
        due = [cluster for cluster in clusters if self._consolidate.state_of(self._run, self._mode, cluster) == "due"]
        written = [await self._consolidate.distilled(self._run, self._mode, cluster) for cluster in due]
        self._under_way.spend(sum(one.told.tokens for one in written))
        await self._under_way.tell([one.event for one in written])
        await self._settled([one.event for one in written])
        by_model = sum(one.told.by_model for one in written)
        self._under_way.count(self._mode, clusters=len(clusters), by_model=by_model)
        for cluster in clusters:
            self._note(cluster)

    async def _settled(self, events: Sequence[Distilled]) -> None:
        """Wait until the keeper has written or refused what it was told."""
        await self._under_way.until(lambda: all(self._consolidate.outcome_of(event) != "due" for event in events))

    def _note(self, cluster: TurnCluster) -> None:
        """Count a cluster that was distilled by this run, now or before it was cut off."""
        under_way, size = self._under_way, len(cluster.sources)
        if self._consolidate.state_of(self._run, self._mode, cluster) != "done":
            under_way.tally.skipped += 1
            return
        under_way.tally.processed += 1
        memory_id = self._consolidate.memory_id(self._run, self._mode, cluster)
        under_way.created.append(memory_id)
        under_way.superseded += [source.memory_id for source in cluster.sources]
        under_way.count(self._mode, created=1, superseded=size)
        memory = under_way.ctx.stores.memories.get(self._run.partition, memory_id)
        after = None if memory is None else memory.text[:MAX_DIFF_CHARS]
        under_way.diff.append(Difference(op="distil", memory_id=memory_id, before=f"{size} turns", after=after))
