"""Revise the labels of turns: without rules that were withdrawn, with rules that a language model found.

Awaits nothing, reads few records.
"""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from agents.ports.lexical_index import LexicalIndex
from agents.ports.stores import Memories
from agents.rules.context.sticky import STICKY_LABELS
from agents.rules.context.visible_memories import CURRENT_STATE_LABELS, VisibleSet, is_contradicted, remaining_labels
from agents.rules.cues.labels import LABEL_BY_ITEM_KIND, SentenceLabel
from agents.rules.index.columns import Mask
from agents.rules.index.memory_columns import MemoryColumns
from schemas.models.vectors import MemoryFilter
from schemas.state.memories import Memory, item_index_name

MAX_OUTDATED_ITEMS = 200
"""Outdated items that are read, the latest ones of a scope; each takes some 50 us."""

MAX_MODEL_RULE_ITEMS = 200
"""The same for items that a model may have found."""


class RevisedRules:
    """Finds turns with withdrawn rules, and turns in which a model found a rule."""

    def __init__(self, words: LexicalIndex, memories: Memories, *, asks_model: bool = False) -> None:
        """`asks_model`: a language model reads the turns."""
        self._words = words
        self._memories = memories
        self._asks_model = asks_model

    def apply(self, visible: VisibleSet, memory_columns: MemoryColumns, where: MemoryFilter) -> VisibleSet:
        """Return the visible set with the labels that still hold."""
        items_by_turn: defaultdict[str, list[Memory]] = defaultdict(list)
        for item in self._outdated(where):
            for memory_id in _source_ids(item):
                items_by_turn[memory_id].append(item)
        revised: dict[int, SentenceLabel] = {}
        for memory_id, items in items_by_turn.items():
            number, turn = memory_columns.number_of.get(memory_id), self._memories.get(memory_id)
            if number is not None and turn is not None:
                revised[number] = remaining_labels(turn, items)
        for number, label in self._model_labels(memory_columns, where) if self._asks_model else ():
            revised[number] = revised.get(number, SentenceLabel(int(visible.columns.labels[number]))) | label
        return visible.with_labels(revised)

    def _model_labels(self, memory_columns: MemoryColumns, where: MemoryFilter) -> Iterator[tuple[int, SentenceLabel]]:
        """Yield the turns that a model has read, by number, with the labels of their items' kinds."""
        columns = self._words.memory_columns(item_index_name(where.boundary)).columns
        mask = ~columns.superseded & ((columns.labels & STICKY_LABELS.value) != 0)
        for item in self._latest(mask, where, MAX_MODEL_RULE_ITEMS):
            label = LABEL_BY_ITEM_KIND.get(item.item.kind if item.item else None)
            if label is None:
                continue
            for memory_id in _source_ids(item):
                number, turn = memory_columns.number_of.get(memory_id), self._memories.get(memory_id)
                if number is not None and turn is not None and turn.reading.status == "model":
                    yield number, label

    def _outdated(self, where: MemoryFilter) -> list[Memory]:
        """Return the latest visible items about current state that no longer hold."""
        columns = self._words.memory_columns(item_index_name(where.boundary)).columns
        mask = columns.superseded & ((columns.labels & CURRENT_STATE_LABELS.value) != 0)
        return [item for item in self._latest(mask, where, MAX_OUTDATED_ITEMS) if is_contradicted(item)]

    def _latest(self, mask: Mask, where: MemoryFilter, most: int) -> list[Memory]:
        """Return the latest visible ones of these items."""
        if not mask.any():
            return []
        memory_columns = self._words.memory_columns(item_index_name(where.boundary))
        numbers = np.flatnonzero(mask & memory_columns.admitted(where, include_superseded=True))
        latest = numbers[np.argsort(-memory_columns.columns.occurred_ms[numbers], kind="stable")[:most]]
        found = (self._memories.get(memory_columns.id_of[number]) for number in latest.tolist())
        return [memory for memory in found if memory is not None]


def _source_ids(item: Memory) -> set[str]:
    return {one.memory_id for one in item.evidence if one.memory_id}
