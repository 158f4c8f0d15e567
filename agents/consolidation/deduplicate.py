"""Decides how the items of a scope evolve in a consolidation: which are one, and how likely each still holds.

Enters: the records of items, and of what was distilled. Leaves: what the keeper of memories is to be told. It writes
nothing itself.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from agents.ports.consolidation_run import ConsolidationRun
from agents.ports.lexical_index import LexicalIndex
from agents.ports.stores import Memories
from agents.rules.consolidation.decay import decayed_stability
from agents.rules.consolidation.dedup import DedupEntry, dedup_entry_of, find_duplicates
from agents.rules.index.traits import TURN_TYPE, MemoryKind
from agents.rules.memory.superseding import can_supersede
from schemas.consolidation import ItemsMerged
from schemas.memories import Memory, index_names


class Deduplicate:
    """Items in, what becomes of them out."""

    def __init__(self, memories: Memories, words: LexicalIndex) -> None:
        self._memories = memories
        self._words = words

    def items(self, run: ConsolidationRun, mode: str) -> list[str]:
        """The ids of what was found or distilled in a scope and mode, and stands."""
        found: list[str] = []
        for shelf in index_names(run.trigger.scope.boundary):
            roster = self._words.memory_columns(shelf)
            there = roster.of_kind(partial(_is_item, run=run, mode=mode, shelf=shelf)).astype(np.bool_)
            standing = roster.columns.live & there & ~roster.columns.superseded
            found += [roster.id_of[number] for number in np.flatnonzero(standing).tolist()]
        return found

    def read_items(self, run: ConsolidationRun, ids: Sequence[str]) -> tuple[list[DedupEntry], list[ItemsMerged]]:
        """These items as they are compared, and which of them fade."""
        known = [self._memories.get(one) for one in ids]
        items = [one for one in known if one is not None and one.item is not None and one.superseded_by is None]
        lines = [dedup_entry_of(item) for item in items if item.origin == "extracted"]
        return lines, [event for item in items if (event := _fading(item, run)) is not None]

    def merges(self, run: ConsolidationRun, lines: Sequence[DedupEntry]) -> list[ItemsMerged]:
        """Which items go into an older one that says the same."""
        return [
            ItemsMerged(run=run.run, memory_id=item.memory_id, content_hash=item.content_hash, into=older.memory_id)
            for item, older in find_duplicates(lines)
        ]

    def is_settled(self, event: ItemsMerged) -> bool:
        """Whether the keeper has done, or will not do, what it was told."""
        item = self._memories.get(event.memory_id)
        if item is None or item.item is None or item.content_hash != event.content_hash or item.superseded_by:
            return True
        if event.into is None:
            return item.item.stability == event.stability
        older = self._memories.get(event.into)
        return older is None or not can_supersede(item, older)

    def item(self, memory_id: str) -> Memory | None:
        """An item as it is."""
        return self._memories.get(memory_id)


def _is_item(kind: MemoryKind, *, run: ConsolidationRun, mode: str, shelf: str) -> bool:
    """Whether it is of the run's scope and this mode, and no turn."""
    is_turn = shelf == run.trigger.scope.boundary and kind.type == TURN_TYPE
    return dict(kind.scope) == run.scope and kind.mode == mode and not is_turn


def _fading(item: Memory, run: ConsolidationRun) -> ItemsMerged | None:
    stability = decayed_stability(item, run.at)
    if stability is None:
        return None
    return ItemsMerged(run=run.run, memory_id=item.memory_id, content_hash=item.content_hash, stability=stability)
