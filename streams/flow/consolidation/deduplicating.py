"""How the items of a scope evolve in a consolidation: doubles are merged, stability fades, categories are made anew."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial as bound

from agents.categories.categorize import Categorize
from agents.consolidation.deduplicate import Deduplicate
from agents.rules.consolidation.dedup import DedupEntry
from agents.rules.intentions.view import visible_intention
from schemas.changes import Change
from schemas.consolidation import Difference, ItemsMerged, Operation
from schemas.intention import Intention
from schemas.memories import CategoryAssignment
from streams.batching import batches
from streams.flow.consolidation.run_under_way import MAX_DIFF_CHARS, RunProgress
from streams.flow.support.awaiting import await_all
from streams.flow.support.backoff import until_available

ITEM_PAGE_SIZE = 200
"""Items that are read in one go, and told of before the run looks what became of them."""

MAX_SETTLE_WAIT_S = 10.0
"""How long it waits until items are as they were told to be: one that somebody else wrote meanwhile may never be."""


class Deduplication:
    """The evolution of one run."""

    def __init__(self, evolve: Deduplicate, under_way: RunProgress) -> None:
        self._evolve, self._under_way = evolve, under_way
        self._run = under_way.run
        self._merged: dict[str, str] = {}
        self._intention = self._in_view()

    async def deduplicate_mode(self, mode: str) -> None:
        """Merge the items of a mode that say the same, and let those fade that are old."""
        lines: list[DedupEntry] = []
        fading: list[ItemsMerged] = []
        for page in batches(self._evolve.items(self._run, mode), ITEM_PAGE_SIZE):
            some, fade = self._evolve.read_items(self._run, page)
            lines += some
            fading += fade
            await asyncio.sleep(0)
        # Off the event loop, as there may be tens of thousands.
        merges = await asyncio.to_thread(self._evolve.merges, self._run, lines)
        merged = {event.memory_id for event in merges}
        self._under_way.count(mode, merged=await self._told(merges))
        self._under_way.count(mode, decayed=await self._told([one for one in fading if one.memory_id not in merged]))

    def report_merged_entries(self) -> None:
        """Say which entries went with their items, and what is shown for them: the entry of the item that stands."""
        for part, entry in self._intention.entries():
            into = self._merged.get(entry.item_id or "")
            item = self._evolve.item(into) if into else None
            if item is not None:
                texts = {"before": entry.text[:MAX_DIFF_CHARS], "after": item.text[:MAX_DIFF_CHARS]}
                self._under_way.diff.append(Difference(op="merge_entry", name=part, memory_id=into, **texts))

    def _in_view(self) -> Intention:
        """The intention as it is shown before anything is merged."""
        ctx, partition = self._under_way.ctx, self._run.partition
        return visible_intention(
            ctx.stores.intentions.get(partition, self._run.scope), bound(ctx.stores.memories.get, partition)
        )

    async def refresh_categories(self, categorize: Categorize) -> None:
        """Put items under the categories that they belong under by now, and make summaries anew that are due."""
        if self._under_way.is_over() or not self._under_way.is_assigned():
            return
        partition, scope = self._run.partition, self._run.scope
        meters = self._under_way.ctx.meters
        assigned = await until_available(lambda: categorize.reassigned(scope), "vector index", meters)
        for some in batches(sorted(assigned), ITEM_PAGE_SIZE):
            if self._under_way.is_over() or not self._under_way.is_assigned():
                return
            await self._assigned({memory_id: assigned[memory_id] for memory_id in some})
        before = self._under_way.ctx.stores.categories.get(partition, scope)
        changed = await categorize.refresh(scope, allowance=self._under_way)
        await await_all(self._under_way.ctx.stores.categories.pending_writes())
        for after in changed:
            was = before.find(after.name)
            texts = {"before": was.summary if was else None, "after": after.summary}
            shown = {name: text and text[:MAX_DIFF_CHARS] for name, text in texts.items()}
            self._under_way.diff.append(Difference(op="refresh_category", name=after.name, **shown))

    async def _assigned(self, assigned: Mapping[str, tuple[CategoryAssignment, ...]]) -> None:
        before = {memory_id: self._named(memory_id) for memory_id in assigned}
        change = Change(scope=self._run.trigger.scope, action="assign", assigned=dict(assigned), result={})
        await self._under_way.tell([change], self._under_way.ctx.topics.changes)
        await self._under_way.until(lambda: all(self._is_under(*one) for one in assigned.items()), MAX_SETTLE_WAIT_S)
        self._under_way.diff += [
            Difference(op="assign_category", memory_id=one, before=before[one], after=self._named(one))
            for one in assigned
        ]

    def _is_under(self, memory_id: str, categories: tuple[CategoryAssignment, ...]) -> bool:
        item = self._evolve.item(memory_id)
        return item is None or item.item is None or item.item.categories == categories

    def _named(self, memory_id: str) -> str | None:
        item = self._evolve.item(memory_id)
        named = item.item.categories if item and item.item else ()
        return ", ".join(one.name for one in named) or None

    async def _told(self, events: Sequence[ItemsMerged]) -> int:
        """Have the keeper told of what becomes of items, and wait for it; says how many it was."""
        done = 0
        for some in batches(events, ITEM_PAGE_SIZE):
            if self._under_way.is_over() or not self._under_way.is_assigned():
                break
            before = {event.memory_id: self._shown(event.memory_id, event) for event in some}
            await self._under_way.tell(some)
            await self._under_way.until(bound(self._are_settled, some), MAX_SETTLE_WAIT_S)
            for event in some:
                after = self._shown(event.into or event.memory_id, event)
                op: Operation = "merge" if event.into else "decay"
                self._merged |= {event.memory_id: event.into} if event.into else {}
                self._under_way.diff.append(
                    Difference(op=op, memory_id=event.memory_id, before=before[event.memory_id], after=after)
                )
            done += len(some)
        return done

    def _are_settled(self, events: Sequence[ItemsMerged]) -> bool:
        return all(self._evolve.is_settled(event) for event in events)

    def _shown(self, memory_id: str, event: ItemsMerged) -> str | None:
        """What a difference says of an item: its text where it is merged, its stability where it fades."""
        item = self._evolve.item(memory_id)
        if item is None or item.item is None:
            return None
        return item.text[:MAX_DIFF_CHARS] if event.into else str(item.item.stability)
