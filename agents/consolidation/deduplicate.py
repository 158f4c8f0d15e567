"""Plan deduplication and decay of a scope's items and distilled memories. Writes nothing."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from agents.ports.consolidation_run import ConsolidationRun
from agents.ports.lexical_index import LexicalIndex
from agents.ports.stores import Memories
from agents.rules.consolidation.dedup import DedupEntry, dedup_entry_of, find_duplicates
from agents.rules.consolidation.distillation import decayed_stability
from agents.rules.index.memory_columns import TURN_TYPE, MemoryKind
from agents.rules.memory.understanding import can_supersede
from schemas.internal.consolidation import ItemsMerged
from schemas.state.memories import Memory, index_names


class Deduplicate:
    """Items in, `ItemsMerged` events out."""

    def __init__(self, memories: Memories, words: LexicalIndex) -> None:
        self._memories = memories
        self._words = words

    def items(self, run: ConsolidationRun, mode: str) -> list[str]:
        """Return the ids of current items and distilled memories of a scope and mode."""
        found: list[str] = []
        for name in index_names(run.trigger.scope.boundary):
            memories = self._words.memory_columns(name)
            items = memories.of_kind(partial(_is_item, run=run, mode=mode, index_name=name)).astype(np.bool_)
            current = memories.columns.live & items & ~memories.columns.superseded
            found += [memories.id_of[number] for number in np.flatnonzero(current).tolist()]
        return found

    def read_items(self, run: ConsolidationRun, ids: Sequence[str]) -> tuple[list[DedupEntry], list[ItemsMerged]]:
        """Return the entries of these items to compare, and the events of decayed ones."""
        found = [self._memories.get(one) for one in ids]
        items = [one for one in found if one is not None and one.item is not None and one.superseded_by is None]
        entries = [dedup_entry_of(item) for item in items if item.origin == "extracted"]
        return entries, [event for item in items if (event := _decay_event(item, run)) is not None]

    def merges(self, run: ConsolidationRun, entries: Sequence[DedupEntry]) -> list[ItemsMerged]:
        """Return the events that merge items into older ones of the same content."""
        return [
            ItemsMerged(run=run.run, memory_id=item.memory_id, content_hash=item.content_hash, into=older.memory_id)
            for item, older in find_duplicates(entries)
        ]

    def is_settled(self, event: ItemsMerged) -> bool:
        """True if an event has been applied, or will not be."""
        item = self._memories.get(event.memory_id)
        if item is None or item.item is None or item.content_hash != event.content_hash or item.superseded_by:
            return True
        if event.into is None:
            return item.item.stability == event.stability
        older = self._memories.get(event.into)
        return older is None or not can_supersede(item, older)

    def item(self, memory_id: str) -> Memory | None:
        """Return the current record of an item."""
        return self._memories.get(memory_id)


def _is_item(kind: MemoryKind, *, run: ConsolidationRun, mode: str, index_name: str) -> bool:
    """True if the memories are of the run's scope and this mode, and not turns."""
    is_turn = index_name == run.trigger.scope.boundary and kind.type == TURN_TYPE
    return dict(kind.scope) == run.scope and kind.mode == mode and not is_turn


def _decay_event(item: Memory, run: ConsolidationRun) -> ItemsMerged | None:
    stability = decayed_stability(item, run.at)
    if stability is None:
        return None
    return ItemsMerged(run=run.run, memory_id=item.memory_id, content_hash=item.content_hash, stability=stability)
