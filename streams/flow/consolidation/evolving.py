"""The parts of a consolidation: distil the turns of a mode, deduplicate and decay items, refresh categories.

A few distilled clusters are published at a time for `Remember`. A run has a budget, and its results so far.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial as bound
from typing import Any

import numpy as np
from pydantic import BaseModel

from agents.categories.categorize import Categorize
from agents.consolidation.consolidate import Consolidate, Deduplicate, RunLimits
from agents.ports.commands import ConsolidationRun
from agents.ports.pipelines import State
from agents.rules.consolidation.dedup import DedupEntry
from agents.rules.consolidation.distillation import Source, TurnCluster
from agents.rules.intentions.transitions import visible_intention
from schemas.internal.changes import Change, JobProgress
from schemas.internal.consolidation import Consolidated, Difference, ItemsMerged, ModeCounts, Operation, RefreshCounts
from schemas.models.vectors import Matrix
from schemas.state.memories import CategoryAssignment
from schemas.state.modes import VectorSpace
from streams.backoff import until_available
from streams.batching import batches
from streams.flow.publisher import await_all
from streams.flow.requests.channel import event_out
from streams.flow.worker_context import WorkerContext

OUT_OF_TIME = "the time limit of one run is reached; the next run continues"
"""Reason of an unfinished run."""

PLANNING_TIME_SHARE = 0.5
"""Share of the remaining time for understanding turns again, then for the search of clusters; the rest is for what
follows: writing them."""

MAX_DIFF_CHARS = 160

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
        if tokens > self.tokens_left:
            self.unfinished = "the token limit of one run is reached; the next run continues"
            return False
        return True

    def spend(self, tokens: int) -> None:
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


TURN_PAGE_SIZE = 200
"""Turns read, and vectors fetched, at once: about 20 ms."""

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
            await asyncio.sleep(RUN_POLL_INTERVAL_S)

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


ITEM_PAGE_SIZE = 200
"""Items that are read at once, and published before the run waits until they are applied."""

MAX_SETTLE_WAIT_S = 10.0
"""Maximum wait until events are applied: an item that was written otherwise in the meantime may never match."""


class Deduplication:
    """Deduplication, decay and category refresh of one run."""

    def __init__(self, evolve: Deduplicate, progress: RunProgress) -> None:
        self._evolve, self._progress = evolve, progress
        self._run = progress.run
        self._merged: dict[str, str] = {}
        # The visible intention before any merge.
        ctx, partition = self._progress.ctx, self._run.partition
        self._intention = visible_intention(
            ctx.stores.intentions.get(partition, self._run.scope), bound(ctx.stores.memories.get, partition)
        )

    async def deduplicate(self, modes: Sequence[str]) -> None:
        """Merge duplicate items of each mode, lower the stability of old ones, and report merged intentions."""
        for mode in modes:
            await self._deduplicate_mode(mode)
        # Report the intention entries of merged items, each with the text of the current item.
        for part, entry in self._intention.entries():
            into = self._merged.get(entry.item_id or "")
            item = self._evolve.item(into) if into else None
            if item is not None:
                texts = {"before": entry.text[:MAX_DIFF_CHARS], "after": item.text[:MAX_DIFF_CHARS]}
                self._progress.diff.append(Difference(op="merge_entry", name=part, memory_id=into, **texts))

    async def _deduplicate_mode(self, mode: str) -> None:
        entries: list[DedupEntry] = []
        decayed: list[ItemsMerged] = []
        for page in batches(self._evolve.items(self._run, mode), ITEM_PAGE_SIZE):
            page_entries, page_decayed = self._evolve.read_items(self._run, page)
            entries += page_entries
            decayed += page_decayed
            await asyncio.sleep(0)
        # Off the event loop, as there may be tens of thousands.
        merges = await asyncio.to_thread(self._evolve.merges, self._run, entries)
        merged = {event.memory_id for event in merges}
        self._progress.count(mode, merged=await self._publish(merges))
        unmerged = [item for item in decayed if item.memory_id not in merged]
        self._progress.count(mode, decayed=await self._publish(unmerged))

    async def refresh_categories(self, categorize: Categorize) -> None:
        """Reassign items to the categories that they match now, and refresh due summaries."""
        if self._progress.is_over() or not self._progress.is_assigned():
            return
        partition, scope = self._run.partition, self._run.scope
        meters = self._progress.ctx.meters
        assigned = await until_available(lambda: categorize.reassigned(scope), "vector index", meters)
        for some in batches(sorted(assigned), ITEM_PAGE_SIZE):
            if self._progress.is_over() or not self._progress.is_assigned():
                return
            await self._assign({memory_id: assigned[memory_id] for memory_id in some})
        before = self._progress.ctx.stores.categories.get(partition, scope)
        changed = await categorize.refresh(scope, allowance=self._progress)
        await await_all(self._progress.ctx.stores.categories.pending_writes())
        for after in changed:
            known = before.find(after.name)
            texts = {"before": known.summary if known else None, "after": after.summary}
            shown = {name: text and text[:MAX_DIFF_CHARS] for name, text in texts.items()}
            self._progress.diff.append(Difference(op="refresh_category", name=after.name, **shown))

    async def _assign(self, assigned: Mapping[str, tuple[CategoryAssignment, ...]]) -> None:
        before = {memory_id: self._category_names(memory_id) for memory_id in assigned}
        change = Change(scope=self._run.trigger.scope, action="assign", assigned=dict(assigned), result={})
        await self._progress.publish([change], self._progress.ctx.topics.changes)
        await self._progress.until(
            lambda: all(self._is_in(*assignment) for assignment in assigned.items()), MAX_SETTLE_WAIT_S
        )
        self._progress.diff += [
            Difference(
                op="assign_category",
                memory_id=memory_id,
                before=before[memory_id],
                after=self._category_names(memory_id),
            )
            for memory_id in assigned
        ]

    def _is_in(self, memory_id: str, categories: tuple[CategoryAssignment, ...]) -> bool:
        item = self._evolve.item(memory_id)
        return item is None or item.item is None or item.item.categories == categories

    def _category_names(self, memory_id: str) -> str | None:
        item = self._evolve.item(memory_id)
        categories = item.item.categories if item and item.item else ()
        return ", ".join(category.name for category in categories) or None

    async def _publish(self, events: Sequence[ItemsMerged]) -> int:
        """Publish events page by page, wait until `Remember` has applied each page, and return their number."""
        done = 0
        for some in batches(events, ITEM_PAGE_SIZE):
            if self._progress.is_over() or not self._progress.is_assigned():
                break
            before = {event.memory_id: self._describe(event.memory_id, event) for event in some}
            await self._progress.publish(some)
            await self._progress.until(bound(self._are_settled, some), MAX_SETTLE_WAIT_S)
            for event in some:
                after = self._describe(event.into or event.memory_id, event)
                op: Operation = "merge" if event.into else "decay"
                self._merged |= {event.memory_id: event.into} if event.into else {}
                self._progress.diff.append(
                    Difference(op=op, memory_id=event.memory_id, before=before[event.memory_id], after=after)
                )
            done += len(some)
        return done

    def _are_settled(self, events: Sequence[ItemsMerged]) -> bool:
        return all(self._evolve.is_settled(event) for event in events)

    def _describe(self, memory_id: str, event: ItemsMerged) -> str | None:
        """Return an item's text in the difference of a merge, its stability in that of a decay."""
        item = self._evolve.item(memory_id)
        if item is None or item.item is None:
            return None
        return item.text[:MAX_DIFF_CHARS] if event.into else str(item.item.stability)
