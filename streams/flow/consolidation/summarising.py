"""Distil the turns of one mode: cluster them, and publish a few distilled clusters at a time for `Remember`."""

import asyncio
from collections.abc import Awaitable, Sequence

import numpy as np

from agents.consolidation.consolidate import Consolidate
from agents.ports.pipelines import State
from agents.rules.consolidation.distillation import Source, TurnCluster
from schemas.internal.consolidation import Difference
from schemas.models.vectors import Matrix
from schemas.state.modes import VectorSpace
from streams.backoff import until_available
from streams.batching import batches
from streams.flow.consolidation import run_under_way
from streams.flow.consolidation.run_under_way import MAX_DIFF_CHARS, OUT_OF_TIME, RunProgress

TURN_PAGE_SIZE = 200
"""Turns that are read, and vectors that are fetched, at once: some 20 ms."""

CLUSTER_BATCH_SIZE = 10
"""Clusters that are published before the run waits until they are applied."""

MAX_VECTOR_WAIT_S = 10.0
"""Maximum wait for vectors in flight, so that the latest turns take part."""


class ModeDistillation:
    """Distils the turns of one mode in one run."""

    def __init__(self, mode: str, space: VectorSpace, consolidate: Consolidate, progress: RunProgress) -> None:
        self._mode, self._space = mode, space
        self._consolidate, self._progress = consolidate, progress
        self._run = progress.run

    async def select(self, _state: State) -> State:
        """Return the turns that take part, after vectors in flight have been written."""
        loop = asyncio.get_running_loop()
        wait_until = loop.time() + MAX_VECTOR_WAIT_S
        while True:
            sources: list[Source] = []
            waiting = 0
            for page in batches(self._consolidate.turns(self._run, self._mode), TURN_PAGE_SIZE):
                read = self._consolidate.read_turns(self._run, self._space, page)
                sources += read.sources
                waiting += read.waiting
                await asyncio.sleep(0)
            if not waiting or loop.time() > wait_until or not self._progress.is_assigned():
                self._progress.count(self._mode, waiting=waiting)
                return {"turns": sources}
            await asyncio.sleep(run_under_way.RUN_POLL_INTERVAL_S)

    async def summarise(self, state: State) -> None:
        """Distil all clusters of the turns, within the limits of the run."""
        sources, vectors = await self._vectors(state["turns"])
        self._progress.count(self._mode, turns=len(sources))
        digest = await self._digest(sources)
        is_late = self._progress.planning_deadline()
        # Cluster off the event loop: fifty thousand turns take ten seconds and more.
        runs = self._progress.ctx.consolidations.get(self._run.partition, self._run.scope)
        if runs.has_looked_at(self._mode, digest):
            found = []
        else:
            found = await asyncio.to_thread(self._consolidate.limits.clusters, sources, vectors, is_late)
        self._progress.tally.total += len(found)
        for number, some in enumerate(batches(found, CLUSTER_BATCH_SIZE)):
            if not self._progress.is_assigned():
                return
            expected_tokens = sum(self._consolidate.expected_tokens(self._run, self._mode, cluster) for cluster in some)
            if self._progress.is_over() or not self._progress.may_spend(expected_tokens):
                self._progress.count(self._mode, left=len(found) - number * CLUSTER_BATCH_SIZE)
                return
            await self._distil(some)
        if is_late():
            self._progress.unfinished = OUT_OF_TIME
            return
        taken = {source.memory_id for cluster in found for source in cluster.sources}
        left = [source for source in sources if source.memory_id not in taken]
        self._progress.left[self._mode] = await self._digest(left)

    async def _digest(self, sources: Sequence[Source]) -> str:
        """Digest off the event loop, too: many turns take longer than a question may wait."""
        return await asyncio.to_thread(self._consolidate.limits.digest, sources, self._space.fingerprint.digest)

    async def _vectors(self, sources: Sequence[Source]) -> tuple[list[Source], Matrix]:
        embedded: list[Source] = []
        rows = [np.zeros((0, self._space.fingerprint.dim), np.float32)]
        for page in batches(sources, TURN_PAGE_SIZE):

            def fetch(page: Sequence[Source] = page) -> Awaitable[tuple[list[Source], Matrix]]:
                return self._consolidate.vectors(self._space, page)

            some, vectors = await until_available(fetch, "vector index", self._progress.ctx.meters)
            embedded += some
            rows.append(vectors)
        return embedded, np.concatenate(rows)

    async def _distil(self, clusters: Sequence[TurnCluster]) -> None:
        """Publish the distilled memories of some clusters, wait until they are applied, and count them."""
        due = [cluster for cluster in clusters if self._consolidate.state_of(self._run, self._mode, cluster) == "due"]
        distilled = [await self._consolidate.distilled(self._run, self._mode, cluster) for cluster in due]
        self._progress.spend(sum(distillation.summary.tokens for distillation in distilled))
        events = [distillation.event for distillation in distilled]
        await self._progress.publish(events)
        # Until `Remember` has written or refused these memories.
        await self._progress.until(lambda: all(self._consolidate.outcome_of(event) != "due" for event in events))
        by_model = sum(distillation.summary.by_model for distillation in distilled)
        self._progress.count(self._mode, clusters=len(clusters), by_model=by_model)
        for cluster in clusters:
            self._count(cluster)

    def _count(self, cluster: TurnCluster) -> None:
        """Count a cluster that this run has distilled, also before it was interrupted."""
        progress, size = self._progress, len(cluster.sources)
        if self._consolidate.state_of(self._run, self._mode, cluster) != "done":
            progress.tally.skipped += 1
            return
        progress.tally.processed += 1
        memory_id = self._consolidate.memory_id(self._run, self._mode, cluster)
        progress.created.append(memory_id)
        progress.superseded += [source.memory_id for source in cluster.sources]
        progress.count(self._mode, created=1, superseded=size)
        memory = progress.ctx.stores.memories.get(self._run.partition, memory_id)
        after = None if memory is None else memory.text[:MAX_DIFF_CHARS]
        progress.diff.append(Difference(op="distil", memory_id=memory_id, before=f"{size} turns", after=after))
