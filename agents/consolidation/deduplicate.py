"""Decides how the items of a scope evolve in a consolidation: which are one, and how likely each still holds.

Enters: the records of items, and of what was distilled. Leaves: what the keeper of memories is to be told. It writes
nothing itself.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from agents.ports.consolidation_run import Run
from agents.ports.lexical_index import WordIndex
from agents.ports.stores import Memories
from agents.rules.consolidation.decay import faded
from agents.rules.consolidation.dedup import Line, duplicates, line_of
from agents.rules.index.traits import SAID, Kind
from agents.rules.memory.superseding import are_alike
from schemas.consolidation import Evolved
from schemas.memories import Memory, shelves


class Evolve:
    """Items in, what becomes of them out."""

    def __init__(self, memories: Memories, words: WordIndex) -> None:
        self._memories = memories
        self._words = words

    def items(self, run: Run, mode: str) -> list[str]:
        """The ids of what was found or distilled in a scope and mode, and stands."""
        found: list[str] = []
        for shelf in shelves(run.trigger.scope.boundary):
            roster = self._words.roster(run.partition, shelf)
            there = roster.of_kind(partial(_is_item, run=run, mode=mode, shelf=shelf)).astype(np.bool_)
            standing = roster.columns.live & there & ~roster.columns.superseded
            found += [roster.id_of[number] for number in np.flatnonzero(standing).tolist()]
        return found

    def read(self, run: Run, ids: Sequence[str]) -> tuple[list[Line], list[Evolved]]:
        """These items as they are compared, and which of them fade."""
        known = [self._memories.get(run.partition, one) for one in ids]
        items = [one for one in known if one is not None and one.item is not None and one.superseded_by is None]
        lines = [line_of(item) for item in items if item.origin == "extracted"]
        return lines, [event for item in items if (event := _fading(item, run)) is not None]

    def merges(self, run: Run, lines: Sequence[Line]) -> list[Evolved]:
        """Which items go into an older one that says the same."""
        return [
            Evolved(run=run.run, memory_id=item.memory_id, content_hash=item.content_hash, into=older.memory_id)
            for item, older in duplicates(lines)
        ]

    def is_settled(self, run: Run, event: Evolved) -> bool:
        """Whether the keeper has done, or will not do, what it was told."""
        item = self._memories.get(run.partition, event.memory_id)
        if item is None or item.item is None or item.content_hash != event.content_hash or item.superseded_by:
            return True
        if event.into is None:
            return item.item.stability == event.stability
        older = self._memories.get(run.partition, event.into)
        return older is None or not are_alike(item, older)

    def item(self, run: Run, memory_id: str) -> Memory | None:
        """An item as it is."""
        return self._memories.get(run.partition, memory_id)


def _is_item(kind: Kind, *, run: Run, mode: str, shelf: str) -> bool:
    """Whether it is of the run's scope and this mode, and no turn."""
    is_turn = shelf == run.trigger.scope.boundary and kind.type == SAID
    return dict(kind.scope) == run.scope and kind.mode == mode and not is_turn


def _fading(item: Memory, run: Run) -> Evolved | None:
    stability = faded(item, run.at)
    if stability is None:
        return None
    return Evolved(run=run.run, memory_id=item.memory_id, content_hash=item.content_hash, stability=stability)
