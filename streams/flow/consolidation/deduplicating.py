"""Deduplicate and decay the items of a scope in a consolidation, and refresh its categories."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial as bound

from agents.categories.categorize import Categorize
from agents.consolidation.consolidate import Deduplicate
from agents.rules.consolidation.dedup import DedupEntry
from agents.rules.intentions.transitions import visible_intention
from schemas.internal.changes import Change
from schemas.internal.consolidation import Difference, ItemsMerged, Operation
from schemas.state.memories import CategoryAssignment
from streams.backoff import until_available
from streams.batching import batches
from streams.flow.consolidation.run_under_way import MAX_DIFF_CHARS, RunProgress
from streams.flow.publisher import await_all

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
