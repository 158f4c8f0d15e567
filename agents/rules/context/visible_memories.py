"""What a context may be made of: the memories of a scope that a request may see, with their marks. Pure.

Memories are numbers, as in a roster. Every list of numbers that leaves has the newest first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from agents.rules.cues.labels import NO_LABELS, SentenceLabel
from agents.rules.index.columns import MISSING, ColumnArrays, IntArray, Mask
from agents.rules.index.memory_columns import MemoryColumns
from schemas.vectors import MemoryFilter

MAX_CONVERSATION_TURNS = 100_000
"""Turns of a conversation that are looked at: all of any that people have."""


@dataclass(frozen=True, slots=True)
class VisibleSet:
    """The memories of a boundary. `admitted` may be seen, `in_conversation` belong to the conversation that is asked in.

    `time_rank` counts the admitted ones in order of time from 0.
    """

    columns: ColumnArrays
    admitted: Mask
    in_conversation: Mask
    time_rank: IntArray

    @classmethod
    def of(cls, roster: MemoryColumns, where: MemoryFilter, conversation: str | None) -> Self:
        """What a request sees that asks in a conversation, or in none."""
        columns, admitted = roster.columns, roster.admitted(where)
        here = np.zeros(len(admitted), np.bool_)
        if conversation is not None:
            turns = roster.latest(where, conversation, MAX_CONVERSATION_TURNS)
            here[[roster.number_of[turn] for turn in turns]] = True
        numbers = np.flatnonzero(admitted)
        order = numbers[np.lexsort((columns.source[numbers], columns.occurred_ms[numbers]))]
        when = np.full(len(admitted), MISSING)
        when[order] = np.arange(len(order))
        return cls(columns, admitted, here, when)

    def with_labels(self, marks: Mapping[int, SentenceLabel]) -> Self:
        """The same memories, some with other marks, by number."""
        if not marks:
            return self
        column = self.columns.labels.copy()
        column[list(marks)] = [int(mark) for mark in marks.values()]
        return replace(self, columns=replace(self.columns, labels=column))

    def labelled(self, any_of: SentenceLabel, by: SentenceLabel = NO_LABELS) -> Mask:
        """Which admitted memories have one of these marks, said by one of these roles, or by anybody."""
        mask: Mask = self.admitted & ((self.columns.labels & any_of.value) != 0)
        if by:
            mask &= (self.columns.labels & by.value) != 0
        return mask

    def newest_first(self, mask: Mask) -> list[int]:
        """The numbers of these memories."""
        numbers = np.flatnonzero(mask)
        order: list[int] = numbers[np.argsort(-self.time_rank[numbers], kind="stable")].tolist()
        return order

    def conversation_first(self, mask: Mask) -> list[int]:
        """The numbers of these memories, those of the conversation before the others."""
        return [*self.newest_first(mask & self.in_conversation), *self.newest_first(mask & ~self.in_conversation)]

    def age_of(self, roster: MemoryColumns) -> Callable[[str], int]:
        """Orders memory ids by time, the oldest first; what was not there comes before all."""

        def age(memory_id: str) -> int:
            number = roster.number_of.get(memory_id, MISSING)
            return int(self.time_rank[number]) if 0 <= number < len(self.time_rank) else MISSING

        return age
