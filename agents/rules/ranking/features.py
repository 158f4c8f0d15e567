"""Every signal of some memories for one question, by name. Pure.

Enters: the clues of a question, the fields made of them, and the numbers of the memories that are weighed. Leaves: an
array for each name. A name is a primitive, or a product of primitives as `?when*date`: `?` is a trait of the question,
everything else is of the memory. `late+1` is the field `late` of the turn after, `late-2` that of the second one
before, `late.best` the best in the conversation, `late.answers` that of the turn before where it asks. Which names
count, and how much, is written in the file of weights.
"""

import math
from datetime import date
from functools import lru_cache, reduce

import numpy as np

from agents.rules.index.columns import FloatArray, IntArray
from agents.rules.index.recency import DAY_MS
from agents.rules.ranking.conversation_features import conversation_best, shift_turns, take_or_zero
from agents.rules.ranking.memory_features import (
    BINARY_MEMORY_FEATURES,
    EPOCH_DAY,
    LABEL_BITS,
    MEMORY_FEATURES,
    has_label,
    question_traits,
    said_in_ranges,
    time_range_ms,
)
from agents.rules.ranking.query_features import FeatureArrays, QueryFeatures
from agents.rules.text.date_ranges import DateRange, find_date_ranges

MAX_NEIGHBOUR_SCORE, MAX_CONTEXT_SCORE = 3.0, 4.0
"""Where what a turn gets from its neighbours, and from all around it, stops to grow. A question of one or two words
has whole matches, which training questions seldom have, and what stands beside one must not outdo it."""

FEATURE_DECIMALS = 9
"""Decimals of a signal: far more than tell anything, far fewer than floating point keeps."""

BINARY_FEATURES = frozenset({*LABEL_BITS, *BINARY_MEMORY_FEATURES, "said_then"})
"""Primitives that are 0 or 1, and need no rounding."""


class RankingFeatures:
    """Computes a primitive when it is first asked for."""

    def __init__(self, clues: QueryFeatures, fields: FeatureArrays, numbers: IntArray) -> None:
        """Weigh the memories with these numbers."""
        self._clues = clues
        self._fields = fields
        self._numbers = numbers
        self._stretches = _named_stretches(clues)
        self._traits = question_traits(clues, self._stretches)
        self._known: dict[str, FloatArray] = {}

    def of(self, name: str) -> FloatArray | None:
        """The signal of this name, shape of the numbers; None where it is 0 for all because of the question.

        Raises KeyError for a name that is none.
        """
        traits, primitives = _parts(name)
        factor = math.prod(self._traits.get(trait, 0.0) for trait in traits)
        if not factor:
            return None
        found = reduce(np.multiply, map(self._primitive, primitives))
        return found if factor == 1.0 else factor * found

    def _primitive(self, name: str) -> FloatArray:
        known = self._known.get(name)
        if known is None:
            # A logarithm may differ in its last digit with its place in memory, and equal memories must stay equal.
            made = self._made(name)
            known = self._known[name] = made if name in BINARY_FEATURES else np.round(made, FEATURE_DECIMALS)
        return known

    def _made(self, name: str) -> FloatArray:
        if name in LABEL_BITS:
            return has_label(self._clues, name, self._numbers)
        if name in MEMORY_FEATURES:
            return np.asarray(MEMORY_FEATURES[name](self._clues, self._numbers), np.float64)
        if name == "said_then":
            return said_in_ranges(self._clues, self._numbers, self._stretches).astype(np.float64)
        if name[-2] in "+-":
            beside = take_or_zero(
                self._fields[name[:-2]], shift_turns(self._numbers, self._clues.order, int(name[-2:]))
            )
            return np.minimum(beside, MAX_NEIGHBOUR_SCORE)
        field, _, form = name.partition(".")
        if form:
            return self._formed(field, form)
        found = self._fields[field][self._numbers]
        return np.minimum(found, MAX_CONTEXT_SCORE) if field == "around" else found

    def _formed(self, field: str, form: str) -> FloatArray:
        """What is made of a field: the best of the conversation, or that of the turn before where it is a question."""
        if form == "answers":
            return self._primitive(f"{field}-1") * self._primitive("asked_before")
        best = conversation_best(self._fields[field], self._clues.columns.conversations, self._numbers)
        return np.minimum(best, MAX_CONTEXT_SCORE)


def _named_stretches(clues: QueryFeatures) -> list[DateRange]:
    """The stretches of time that the question names, in years of which there are memories."""
    first, last = (date.fromordinal(EPOCH_DAY + moment // DAY_MS).year for moment in time_range_ms(clues.columns))
    return find_date_ranges(clues.question.asked, range(first, last + 1))


@lru_cache(maxsize=1024)
def _parts(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The traits and the primitives that a name is made of. Every question asks for the same names."""
    parts = name.split("*")
    traits = tuple(part[1:] for part in parts if part.startswith("?"))
    return traits, tuple(part for part in parts if not part.startswith("?"))
