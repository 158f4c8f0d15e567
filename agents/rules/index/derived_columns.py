"""Values that follow from the columns of a boundary alone: computed at the first use, for all questions until a write.

Pure. Arrays have shape (memories,), by number, unless said otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat

import numpy as np

from agents.rules.index.columns import MISSING, ColumnArrays, FloatArray, IntArray, Mask
from agents.rules.index.turn_order import TurnOrder
from agents.rules.text.languages import ENGLISH_INDEX, LANGUAGES, UNKNOWN_LANGUAGE
from schemas.models.vectors import Nearest

MIN_FOUND_SHARE = 4
"""A table of ids is kept by numbers if one of so many of its memories is found."""

LONG_TERMS = 80
"""Terms of the longest text that is not cut into passages, about."""

MIN_LANGUAGE_SHARE = 0.1
"""Minimum share of a boundary's memories for a language to count as spoken: below are quotations and errors."""


@dataclass(frozen=True, slots=True)
class QueryIndependentFeatures:
    """What ranking has computed of some memories that no question changes; arrays of the shape of `numbers`.

    `features` by name; `shifted` has the turn so many places after each memory.
    """

    numbers: IntArray
    features: dict[str, FloatArray] = field(default_factory=dict)
    shifted: dict[int, IntArray] = field(default_factory=dict)


class DerivedColumns:
    """What questions need of one version of the columns, beside the columns themselves."""

    def __init__(self, columns: ColumnArrays, order: TurnOrder, number_of: Mapping[str, int]) -> None:
        self._number_of = number_of
        self.columns = columns
        self.order = order
        self._query_independent = QueryIndependentFeatures(np.zeros(0, np.int64))
        self._numbers: tuple[Sequence[str], IntArray] = (), np.zeros(0, np.int64)
        self._candidates: tuple[Sequence[str], IntArray] = self._numbers

    def numbers_of(self, found: Nearest) -> IntArray:
        """Return the number of each memory found, that after the last for one that is not indexed.

        Those of a table of ids of which a good part is found are kept: each is a place of memory somewhere else.
        """
        candidates, numbers = self._candidates
        if candidates is found.table:
            return numbers[found.rows]
        table, numbers = self._numbers
        if table is not found.table or len(numbers) != len(table):
            if MIN_FOUND_SHARE * len(found) < len(found.table):
                return self._numbers_of(found.memory_ids)
            numbers = self._numbers_of(found.table)
            self._numbers = found.table, numbers
        return numbers[found.rows]

    def keep_candidates(self, memory_ids: Sequence[str], numbers: IntArray) -> None:
        """Keep the numbers of the memories among which a question is about to find some."""
        self._candidates = memory_ids, numbers

    def _numbers_of(self, memory_ids: Sequence[str]) -> IntArray:
        unknown = len(self.columns.live)
        return np.fromiter(map(self._number_of.get, memory_ids, repeat(unknown)), np.int64, len(memory_ids))

    def query_independent_features(self, numbers: IntArray) -> QueryIndependentFeatures:
        """Return what is kept of these memories: all that were computed before if the last question ranked them too.

        Of a user with up to `MAX_RERANKED` memories, questions rank the same ones.
        """
        if not np.array_equal(self._query_independent.numbers, numbers):
            self._query_independent = QueryIndependentFeatures(numbers)
        return self._query_independent

    @cached_property
    def time_range_ms(self) -> tuple[int, int]:
        """The times of the first and last memory in milliseconds since the epoch, (0, 0) without memories."""
        times = self.columns.occurred_ms[self.columns.live]
        return (int(times.min()), int(times.max())) if len(times) else (0, 0)

    @cached_property
    def languages(self) -> Sequence[int]:
        """The indexes of the spoken languages, the most common first; English where none is known."""
        counts = np.bincount(self.columns.languages[self.columns.live], minlength=len(LANGUAGES))
        counts[UNKNOWN_LANGUAGE] = 0
        common = np.flatnonzero(counts > MIN_LANGUAGE_SHARE * counts.sum())
        return sorted(common.tolist(), key=lambda index: -counts[index]) or [ENGLISH_INDEX]

    @cached_property
    def neighbourhood_lengths(self) -> IntArray:
        """The terms of each turn together with the turns before and after it."""
        padded = np.append(self.columns.lengths, 0)
        lengths: IntArray = self.columns.lengths + padded[self.order.before] + padded[self.order.after]
        return lengths

    @cached_property
    def long_share(self) -> float:
        """The share of memories with more than `LONG_TERMS` terms; 0 without any."""
        lengths = self.columns.lengths[self.columns.live]
        return float((lengths > LONG_TERMS).mean()) if len(lengths) else 0.0

    @cached_property
    def mean_log_length(self) -> float:
        """The mean of ln(1 + terms) of the memories; 0 without any."""
        lengths = self.columns.lengths[self.columns.live]
        return float(np.log1p(lengths.astype(np.float64)).mean()) if len(lengths) else 0.0

    @cached_property
    def in_conversation(self) -> Mask:
        """The memories that belong to a conversation."""
        mask: Mask = self.columns.live & (self.columns.conversations != MISSING)
        return mask

    @cached_property
    def conversation_lengths(self) -> IntArray:
        """The terms of each conversation, by its index."""
        conversations, known = self.columns.conversations, self.in_conversation
        size = int(conversations.max(initial=MISSING)) + 1
        return np.bincount(conversations[known], self.columns.lengths[known], size).astype(np.int64)

    @cached_property
    def conversation_places(self) -> IntArray:
        """The conversation of each memory; the number of conversations for memories outside of any."""
        return np.where(self.in_conversation, self.columns.conversations, len(self.conversation_lengths))

    @cached_property
    def last_positions(self) -> IntArray:
        """The position of the last turn of each conversation, by its index; 0 at the end, for `MISSING`."""
        lasts = self.order.last_turns
        found = np.zeros(len(self.conversation_lengths) + 1, np.int64)
        found[list(lasts)] = self.order.positions[list(lasts.values())]
        return found
