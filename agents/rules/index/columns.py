"""Columns of numbers with one row per memory of a boundary, and data derived from them for every question. Pure.

Derived values are computed at their first use and serve all questions until a write. Arrays have shape (memories,), by
number, unless said otherwise. Turns are ordered by time, then by arrival.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import repeat
from typing import Self

import numpy as np
from numpy.typing import NDArray

from agents.rules.text.languages import ENGLISH_INDEX, LANGUAGES, UNKNOWN_LANGUAGE
from schemas.models.vectors import Nearest

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Mask = NDArray[np.bool_]

MISSING = -1
"""Stands for no memory, conversation, speaker or vector space."""


@dataclass(frozen=True, slots=True)
class ColumnArrays:
    """One column per attribute, all of shape (rows,); rows without a memory are not `live`.

    `lengths` counts terms, `importance` is in 0..1. `occurred_ms`, `accepted_ms` and `superseded_ms` count from the
    epoch; the last is 0 for what is not superseded, or was so at all times. `kinds`, `conversations`, `speakers` and
    `spaces` are indexes that `MemoryColumns` assigns. `languages` are indexes in
    `agents.rules.text.languages.LANGUAGES`; `labels` are flags of `agents.rules.cues.labels.SentenceLabel`, which
    include the role. `keys` are indexes of the keys that filters compare (`MemoryRow.keys`).
    """

    live: Mask
    superseded: Mask
    kinds: IntArray
    conversations: IntArray
    speakers: IntArray
    spaces: IntArray
    occurred_ms: IntArray
    source: IntArray
    lengths: IntArray
    importance: FloatArray
    languages: IntArray
    labels: IntArray
    keys: IntArray
    accepted_ms: IntArray
    superseded_ms: IntArray

    @classmethod
    def empty(cls, size: int) -> Self:
        """Return columns of `size` rows without a memory."""
        dtypes = {"live": np.bool_, "superseded": np.bool_, "importance": np.float64}
        return cls(**{column.name: np.zeros(size, dtypes.get(column.name, np.int64)) for column in fields(cls)})

    def extended_to(self, size: int) -> Self:
        """Return a copy with rows without a memory at the end."""
        new = self.empty(size)
        for column in fields(self):
            getattr(new, column.name)[: len(self.live)] = getattr(self, column.name)
        return new

    def by_time(self, numbers: IntArray) -> IntArray:
        """Return these numbers of memories by their times, those of the same time in the order of the log."""
        return numbers[np.lexsort((self.source[numbers], self.occurred_ms[numbers]))]


@dataclass(slots=True)
class TurnOrder:
    """Arrays by number of memory, of shape (memories,); `MISSING` for superseded turns and memories other than turns.

    `before` and `after` are the numbers of the neighbours, `MISSING` at the ends; `positions` count from 0 in each
    conversation. `last_turns` is the last turn of each conversation, by the index of the conversation.
    """

    before: IntArray
    after: IntArray
    positions: IntArray
    last_turns: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: ColumnArrays) -> "TurnOrder":
        before, after, positions = (np.full(len(columns.live), MISSING) for _ in range(3))
        order = cls(before, after, positions)
        turns = np.flatnonzero(columns.live & ~columns.superseded & (columns.conversations != MISSING))
        turns = turns[np.lexsort((columns.source[turns], columns.occurred_ms[turns], columns.conversations[turns]))]
        conversations = columns.conversations[turns]
        starts = np.flatnonzero(np.diff(conversations, prepend=MISSING))
        first, second = turns[:-1], turns[1:]
        is_adjacent = conversations[:-1] == conversations[1:]
        order.after[first[is_adjacent]] = second[is_adjacent]
        order.before[second[is_adjacent]] = first[is_adjacent]
        order.positions[turns] = np.arange(len(turns)) - np.repeat(starts, np.diff(starts, append=len(turns)))
        ends = np.append(starts[1:], len(turns))[: len(starts)] - 1
        order.last_turns = dict(zip(conversations[ends].tolist(), turns[ends].tolist(), strict=True))
        return order

    def append(self, number: int, columns: ColumnArrays) -> bool:
        """Append a new memory of the columns; False, without a change, if it is not the last turn."""
        conversation = int(columns.conversations[number])
        if conversation == MISSING or columns.superseded[number]:
            self._extend(len(columns.live))
            return True
        last = self.last_turns.get(conversation)
        if last is not None and _key(columns, last) >= _key(columns, number):
            return False
        self._extend(len(columns.live))
        self.last_turns[conversation] = number
        self.positions[number] = 0
        if last is not None:
            self.before[number], self.after[last] = last, number
            self.positions[number] = self.positions[last] + 1
        return True

    def _extend(self, size: int) -> None:
        missing = size - len(self.before)
        if missing > 0:
            self.before, self.after, self.positions = (
                np.pad(column, (0, missing), constant_values=MISSING)
                for column in (self.before, self.after, self.positions)
            )


def _key(columns: ColumnArrays, number: int) -> tuple[int, int]:
    return int(columns.occurred_ms[number]), int(columns.source[number])


MIN_FOUND_SHARE = 4
"""Numbers for a table of ids are kept if at least one of so many of its memories is found."""

LONG_TERMS = 80
"""Approximate terms of the longest uncut text."""

MIN_LANGUAGE_SHARE = 0.1
"""Minimum share of a boundary's memories for a language to count as spoken: below are quotations and errors."""


@dataclass(frozen=True, slots=True)
class QueryIndependentFeatures:
    """Question-independent ranking features of some memories; arrays of the shape of `numbers`.

    `features` by name; `shifted` has the turn so many places after each memory.
    """

    numbers: IntArray
    features: dict[str, FloatArray] = field(default_factory=dict)
    shifted: dict[int, IntArray] = field(default_factory=dict)


class DerivedColumns:
    """Derived data of one version of the columns, needed by questions."""

    def __init__(self, columns: ColumnArrays, order: TurnOrder, number_of: Mapping[str, int]) -> None:
        self._number_of = number_of
        self.columns = columns
        self.order = order
        self._query_independent = QueryIndependentFeatures(np.zeros(0, np.int64))
        self._numbers: tuple[Sequence[str], IntArray] = (), np.zeros(0, np.int64)
        self._candidates: tuple[Sequence[str], IntArray] = self._numbers

    def numbers_of(self, nearest: Nearest) -> IntArray:
        """Return the number of each memory found; a memory that is not indexed gets the count of all memories.

        Numbers for a whole table of ids are cached if many of its memories are found, as each lookup is a random
        access.
        """
        candidates, numbers = self._candidates
        if candidates is nearest.table:
            return numbers[nearest.rows]
        table, numbers = self._numbers
        if table is not nearest.table or len(numbers) != len(table):
            if MIN_FOUND_SHARE * len(nearest) < len(nearest.table):
                return self._numbers_of(nearest.memory_ids)
            numbers = self._numbers_of(nearest.table)
            self._numbers = nearest.table, numbers
        return numbers[nearest.rows]

    def keep_candidates(self, memory_ids: Sequence[str], numbers: IntArray) -> None:
        """Keep the numbers of the memories among which a question will look up some."""
        self._candidates = memory_ids, numbers

    def _numbers_of(self, memory_ids: Sequence[str]) -> IntArray:
        unknown = len(self.columns.live)
        return np.fromiter(map(self._number_of.get, memory_ids, repeat(unknown)), np.int64, len(memory_ids))

    def query_independent_features(self, numbers: IntArray) -> QueryIndependentFeatures:
        """Return the stored features of these memories: all computed before if the last question ranked them too.

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
        mask: Mask = self.columns.live & (self.columns.conversations != MISSING)
        return mask

    @cached_property
    def conversation_lengths(self) -> IntArray:
        """The terms of each conversation, by its index."""
        conversations, has_conversation = self.columns.conversations, self.in_conversation
        size = int(conversations.max(initial=MISSING)) + 1
        return np.bincount(conversations[has_conversation], self.columns.lengths[has_conversation], size).astype(
            np.int64
        )

    @cached_property
    def conversation_places(self) -> IntArray:
        """The conversation of each memory; the number of conversations for memories outside of any."""
        return np.where(self.in_conversation, self.columns.conversations, len(self.conversation_lengths))

    @cached_property
    def last_positions(self) -> IntArray:
        """The position of the last turn of each conversation, by its index; 0 at the end, for `MISSING`."""
        lasts = self.order.last_turns
        positions = np.zeros(len(self.conversation_lengths) + 1, np.int64)
        positions[list(lasts)] = self.order.positions[list(lasts.values())]
        return positions


HALF_LIFE_DAYS = {"fast": 7.0, "medium": 30.0, "slow": 180.0, "none": float("inf")}
"""Age at which recency is 0.5, by decay."""

DAY_MS = 86_400_000


def recency(ages_ms: FloatArray, half_lives_ms: FloatArray) -> FloatArray:
    """Return 1 / (1 + age / half-life): 1 for now, 0.5 at the half-life; old ages stay distinct."""
    recent: FloatArray = 1.0 / (1.0 + np.maximum(ages_ms, 0.0) / half_lives_ms)
    return recent
