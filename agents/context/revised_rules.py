"""Revise the labels of turns: without rules that no longer hold, with rules that a language model found.

A rule no longer holds if its item was contradicted, its own date has passed, or a later statement takes it back; an
error that a later statement reports as fixed is none. Awaits nothing, reads few records.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

import numpy as np

from agents.ports.lexical_index import LexicalIndex
from agents.ports.stores import Memories
from agents.rules.context.expiry import expired_spans
from agents.rules.context.sticky import REPORTER_ROLES, RULE_ROLES, STICKY_LABELS
from agents.rules.context.taking_back import taken_back_spans
from agents.rules.context.visible_memories import (
    CURRENT_STATE_LABELS,
    VisibleSet,
    is_contradicted,
    labels_without,
    remaining_labels,
)
from agents.rules.cues.labels import LABEL_BY_ITEM_KIND, SentenceLabel, label_memory, sentences_with_labels
from agents.rules.index.columns import Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.text.sentences import Span
from schemas.models.vectors import MemoryFilter
from schemas.state.memories import Memory, item_index_name

MAX_OUTDATED_ITEMS = 200
"""Outdated items that are read, the latest ones of a scope; each takes some 50 us."""

MAX_MODEL_RULE_ITEMS = 200
"""The same for items that a model may have found."""

MAX_REVISED_TURNS = 200
"""The same for turns with a rule that has a date, or that a later statement may take back."""

MAX_TAKING_BACK = 50
"""Latest statements that take something back."""

RULE_LABELS = (
    SentenceLabel.SAFETY | SentenceLabel.CONSTRAINT | SentenceLabel.STANDING_PREFERENCE | SentenceLabel.INSTRUCTION
)
EXPIRING_LABELS = RULE_LABELS | SentenceLabel.ERROR
"""Labels that a sentence loses when it no longer holds."""


class TakingBack(NamedTuple):
    """Label and roles of statements that take something back, labels of what they take back.

    `by_number`: only if they change a number.
    """

    label: SentenceLabel
    roles: SentenceLabel
    taken: SentenceLabel
    by_number: bool = False


TAKING_BACK = (
    TakingBack(SentenceLabel.WITHDRAWAL, RULE_ROLES, RULE_LABELS),
    TakingBack(SentenceLabel.CORRECTION, SentenceLabel.USER, RULE_LABELS, by_number=True),
    TakingBack(SentenceLabel.RESOLVED, REPORTER_ROLES, SentenceLabel.ERROR),
)


class Statement(NamedTuple):
    """The sentences of a turn that take something back; turns of one request have distinct time ranks."""

    time_rank: int
    scope: Mapping[str, str]
    sentences: Sequence[str]


class RevisedRules:
    """Finds turns with rules that no longer hold, and turns in which a model found a rule."""

    def __init__(self, words: LexicalIndex, memories: Memories, *, asks_model: bool = False) -> None:
        """`asks_model`: a language model reads the turns."""
        self._words = words
        self._memories = memories
        self._asks_model = asks_model

    def apply(self, visible: VisibleSet, memory_columns: MemoryColumns, where: MemoryFilter, today: date) -> VisibleSet:
        """Return the visible set with the labels that still hold `today`."""
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
            revised[number] = revised.get(number, _label_at(visible, number)) | label
        for number, lost in self._lost_labels(visible, memory_columns, today):
            revised[number] = revised.get(number, _label_at(visible, number)) & ~lost
        return visible.with_labels(revised)

    def _lost_labels(
        self, visible: VisibleSet, memory_columns: MemoryColumns, today: date
    ) -> Iterator[tuple[int, SentenceLabel]]:
        """Yield the turns with expired sentences or such that were taken back, by number, with the labels they lose."""
        dated = visible.labelled(EXPIRING_LABELS, of_all_modes=True)
        dated &= visible.labelled(SentenceLabel.DATE, of_all_modes=True)
        yield from self._without(
            visible.newest_first(dated)[:MAX_REVISED_TURNS],
            memory_columns,
            lambda turn, _: expired_spans(turn.text, turn.occurred_at, today),
        )
        for taking_back in TAKING_BACK:
            later = self._statements(visible, memory_columns, taking_back)
            if later:
                rules = visible.labelled(taking_back.taken, RULE_ROLES | REPORTER_ROLES, of_all_modes=True)
                yield from self._without(
                    visible.newest_first(rules)[:MAX_REVISED_TURNS],
                    memory_columns,
                    _taken_back(visible, taking_back, later),
                )

    def _without(
        self, numbers: Iterable[int], memory_columns: MemoryColumns, spans_of: Callable[[Memory, int], list[Span]]
    ) -> Iterator[tuple[int, SentenceLabel]]:
        for number in numbers:
            turn = self._memories.get(memory_columns.id_of[number])
            spans = [] if turn is None else spans_of(turn, number)
            if turn is not None and spans:
                yield number, label_memory(turn) & ~labels_without(turn, spans) & EXPIRING_LABELS

    def _statements(
        self, visible: VisibleSet, memory_columns: MemoryColumns, taking_back: TakingBack
    ) -> list[Statement]:
        """Return the latest turns that take something back."""
        numbers = visible.newest_first(visible.labelled(taking_back.label, taking_back.roles, of_all_modes=True))[
            :MAX_TAKING_BACK
        ]
        turns = ((number, self._memories.get(memory_columns.id_of[number])) for number in numbers)
        return [
            Statement(int(visible.time_rank[number]), turn.scope, sentences_with_labels(turn.text, taking_back.label))
            for number, turn in turns
            if turn is not None
        ]

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


def _taken_back(
    visible: VisibleSet, taking_back: TakingBack, later: Sequence[Statement]
) -> Callable[[Memory, int], list[Span]]:
    """Return what finds the sentences of a turn that a statement after it, in the same scope, takes back."""

    def spans_of(turn: Memory, number: int) -> list[Span]:
        said = int(visible.time_rank[number])
        after = (one for one in later if one.time_rank > said and one.scope == turn.scope)
        statements = [sentence for one in after for sentence in one.sentences]
        return taken_back_spans(turn.text, taking_back.taken, statements, by_number=taking_back.by_number)

    return spans_of


def _label_at(visible: VisibleSet, number: int) -> SentenceLabel:
    return SentenceLabel(int(visible.columns.labels[number]))


def _source_ids(item: Memory) -> set[str]:
    return {one.memory_id for one in item.evidence if one.memory_id}
