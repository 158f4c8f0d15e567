"""The memories that a context may contain, with their current labels. Pure.

Memories are numbers, as in `MemoryColumns`. A contradicted item points to the outdated sentence of its turn; items
superseded by consolidation are still true, and outdate nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from agents.rules.cues.labels import NO_LABELS, SentenceLabel, label_memory
from agents.rules.index.columns import MISSING, ColumnArrays, IntArray, Mask
from agents.rules.index.memory_columns import MemoryColumns
from schemas.models.vectors import MemoryFilter
from schemas.state.memories import Memory

MAX_CONVERSATION_TURNS = 100_000
"""Turns of a conversation that are considered; more than any real conversation has."""


@dataclass(frozen=True, slots=True)
class VisibleSet:
    """Memories of a boundary: `in_scope` are those of the scope, `admitted` those of the context's modes among them.

    `in_conversation` belong to the request's conversation. `time_rank` numbers the memories in scope by time, from 0;
    `MISSING` for others.
    """

    columns: ColumnArrays
    in_scope: Mask
    admitted: Mask
    in_conversation: Mask
    time_rank: IntArray

    @classmethod
    def of(cls, memory_columns: MemoryColumns, where: MemoryFilter, conversation: str | None) -> Self:
        """Return the memories in scope of a request, of all modes, asked in a conversation or in none."""
        columns, admitted = memory_columns.columns, memory_columns.admitted(where)
        in_conversation = np.zeros(len(admitted), np.bool_)
        if conversation is not None:
            turns = memory_columns.latest(where, conversation, MAX_CONVERSATION_TURNS)
            in_conversation[[memory_columns.number_of[turn] for turn in turns]] = True
        numbers = np.flatnonzero(admitted)
        order = numbers[np.lexsort((columns.source[numbers], columns.occurred_ms[numbers]))]
        time_rank = np.full(len(admitted), MISSING)
        time_rank[order] = np.arange(len(order))
        return cls(columns, admitted, admitted, in_conversation, time_rank)

    def of_modes(self, admitted: Mask) -> Self:
        """Return the set restricted to these memories; safety requirements remain visible in the whole scope."""
        return replace(self, admitted=self.in_scope & admitted, in_conversation=self.in_conversation & admitted)

    def with_labels(self, labels: Mapping[int, SentenceLabel]) -> Self:
        """Return the set with some labels replaced, by number."""
        if not labels:
            return self
        column = self.columns.labels.copy()
        column[list(labels)] = [int(label) for label in labels.values()]
        return replace(self, columns=replace(self.columns, labels=column))

    def labelled(self, any_of: SentenceLabel, by: SentenceLabel = NO_LABELS, *, of_all_modes: bool = False) -> Mask:
        """Return the admitted memories with one of these labels, said by one of these roles (none given: any role)."""
        among = self.in_scope if of_all_modes else self.admitted
        mask: Mask = among & ((self.columns.labels & any_of.value) != 0)
        if by:
            mask &= (self.columns.labels & by.value) != 0
        return mask

    def newest_first(self, mask: Mask) -> list[int]:
        """Return the numbers of these memories, newest first."""
        numbers = np.flatnonzero(mask)
        order: list[int] = numbers[np.argsort(-self.time_rank[numbers], kind="stable")].tolist()
        return order

    def conversation_first(self, mask: Mask) -> list[int]:
        """Return the numbers of these memories, the conversation's before others, newest first in each group."""
        return [*self.newest_first(mask & self.in_conversation), *self.newest_first(mask & ~self.in_conversation)]

    def age_of(self, memory_columns: MemoryColumns) -> Callable[[str], int]:
        """Return a sort key of memory ids, oldest first; unknown ids come before all."""

        def age(memory_id: str) -> int:
            number = memory_columns.number_of.get(memory_id, MISSING)
            return int(self.time_rank[number]) if 0 <= number < len(self.time_rank) else MISSING

        return age


CURRENT_STATE_LABELS = SentenceLabel.SAFETY | SentenceLabel.CORRECTION | SentenceLabel.CONSTRAINT | SentenceLabel.ERROR
CURRENT_STATE_LABELS |= SentenceLabel.PREFERENCE | SentenceLabel.STANDING_PREFERENCE | SentenceLabel.INSTRUCTION
CURRENT_STATE_LABELS |= SentenceLabel.DECISION | SentenceLabel.GOAL | SentenceLabel.PENDING
"""Labels that qualify a memory for sections on the current state."""


def is_contradicted(item: Memory) -> bool:
    """Return whether a later statement contradicts the item."""
    return item.superseded_by is not None and item.item is not None and item.item.valid_until is not None


def outdated_spans(memory_id: str, outdated: Iterable[Memory]) -> list[tuple[int, int]]:
    """Return the spans of a turn's text behind these items, given as first code point and end."""
    evidence = (quote for item in outdated for quote in item.evidence)
    return [(quote.start, quote.end) for quote in evidence if quote.memory_id == memory_id and quote.resource is None]


def labels_without(turn: Memory, spans: Iterable[tuple[int, int]]) -> SentenceLabel:
    """Return the labels of the turn without these spans of its text, given as first code point and end."""
    text, start = "", 0
    for begins, ends in sorted(spans):
        text += turn.text[start:begins]
        start = max(start, ends)
    return label_memory(turn.model_copy(update={"text": text + turn.text[start:]}))
