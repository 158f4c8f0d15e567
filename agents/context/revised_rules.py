"""Rules as they hold now: what was taken back is a rule of its turn no more, what a model has understood as one is.

Awaits nothing, reads few records.
"""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from agents.ports.lexical_index import LexicalIndex
from agents.ports.stores import Memories
from agents.rules.context.outdated import CURRENT_STATE_LABELS, is_contradicted, remaining_labels
from agents.rules.context.sticky import STICKY_LABELS
from agents.rules.context.visible_memories import VisibleSet
from agents.rules.cues.labels import LABEL_BY_ITEM_KIND, SentenceLabel
from agents.rules.index.columns import Mask
from agents.rules.index.memory_columns import MemoryColumns
from schemas.memories import Memory, item_index_name
from schemas.vectors import MemoryFilter

MAX_OUTDATED_ITEMS = 200
"""Items of a scope that are looked at: the latest that were taken back. Each is a record to read, some 50 us."""

MAX_MODEL_RULE_ITEMS = 200
"""The same of those that a model may have found."""


class RevisedRules:
    """Finds the turns of which a part was taken back, and those in which a model found a rule."""

    def __init__(self, words: LexicalIndex, memories: Memories, *, asks_model: bool = False) -> None:
        """Take the ports; `asks_model`: whether a model reads the turns."""
        self._words = words
        self._memories = memories
        self._asks_model = asks_model

    def applied(self, sight: VisibleSet, roster: MemoryColumns, where: MemoryFilter) -> VisibleSet:
        """The same sight, in which turns have the marks of what still holds of them."""
        said: defaultdict[str, list[Memory]] = defaultdict(list)
        for item in self._outdated(where):
            for memory_id in _turns_behind(item):
                said[memory_id].append(item)
        revised: dict[int, SentenceLabel] = {}
        for memory_id, items in said.items():
            number, turn = roster.number_of.get(memory_id), self._memories.get(memory_id)
            if number is not None and turn is not None:
                revised[number] = remaining_labels(turn, items)
        for number, mark in self._told(roster, where) if self._asks_model else ():
            revised[number] = revised.get(number, SentenceLabel(int(sight.columns.labels[number]))) | mark
        return sight.with_labels(revised)

    def _told(self, roster: MemoryColumns, where: MemoryFilter) -> Iterator[tuple[int, SentenceLabel]]:
        """The turns that a model has read, by number, with what the items in them are by their kind."""
        columns = self._words.memory_columns(item_index_name(where.boundary)).columns
        mask = ~columns.superseded & ((columns.labels & STICKY_LABELS.value) != 0)
        for item in self._latest(mask, where, MAX_MODEL_RULE_ITEMS):
            mark = LABEL_BY_ITEM_KIND.get(item.item.kind if item.item else None)
            if mark is None:
                continue
            for memory_id in _turns_behind(item):
                number, turn = roster.number_of.get(memory_id), self._memories.get(memory_id)
                if number is not None and turn is not None and turn.reading.status == "model":
                    yield number, mark

    def _outdated(self, where: MemoryFilter) -> list[Memory]:
        """The items of a read that no longer hold and once told how things are, the latest."""
        columns = self._words.memory_columns(item_index_name(where.boundary)).columns
        mask = columns.superseded & ((columns.labels & CURRENT_STATE_LABELS.value) != 0)
        return [item for item in self._latest(mask, where, MAX_OUTDATED_ITEMS) if is_contradicted(item)]

    def _latest(self, mask: Mask, where: MemoryFilter, most: int) -> list[Memory]:
        """The latest of these items that the read may see."""
        if not mask.any():
            return []
        roster = self._words.memory_columns(item_index_name(where.boundary))
        numbers = np.flatnonzero(mask & roster.admitted(where, include_superseded=True))
        latest = numbers[np.argsort(-roster.columns.occurred_ms[numbers], kind="stable")[:most]]
        found = (self._memories.get(roster.id_of[number]) for number in latest.tolist())
        return [memory for memory in found if memory is not None]


def _turns_behind(item: Memory) -> set[str]:
    return {one.memory_id for one in item.evidence if one.memory_id}
