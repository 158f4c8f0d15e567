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

from agents.rules.index.columns import Floats, Numbers
from agents.rules.index.recency import DAY_MS
from agents.rules.ranking.conversation_features import at, best_of_each, stepped
from agents.rules.ranking.memory_features import (
    EPOCH_DAY,
    MARKS,
    MEMORY_SIGNALS,
    WHOLE_SIGNALS,
    first_and_last,
    marked,
    question_traits,
    said_within,
)
from agents.rules.ranking.query_features import Clues, Fields
from agents.rules.text.date_ranges import Stretch, stretches

MOST_BESIDE, MOST_AROUND = 3.0, 4.0
"""Where what a turn gets from its neighbours, and from all around it, stops to grow. A question of one or two words
has whole matches, which training questions seldom have, and what stands beside one must not outdo it."""

EXACT_DIGITS = 9
"""Decimals of a signal: far more than tell anything, far fewer than floating point keeps."""

WHOLE = frozenset({*MARKS, *WHOLE_SIGNALS, "said_then"})
"""Primitives that are 0 or 1, and need no rounding."""


class Signals:
    """Computes a primitive when it is first asked for."""

    def __init__(self, clues: Clues, fields: Fields, numbers: Numbers) -> None:
        """Weigh the memories with these numbers."""
        self._clues = clues
        self._fields = fields
        self._numbers = numbers
        self._stretches = _named_stretches(clues)
        self._traits = question_traits(clues, self._stretches)
        self._known: dict[str, Floats] = {}

    def of(self, name: str) -> Floats | None:
        """The signal of this name, shape of the numbers; None where it is 0 for all because of the question.

        Raises KeyError for a name that is none.
        """
        traits, primitives = _parts(name)
        factor = math.prod(self._traits.get(trait, 0.0) for trait in traits)
        if not factor:
            return None
        found = reduce(np.multiply, map(self._primitive, primitives))
        return found if factor == 1.0 else factor * found

    def _primitive(self, name: str) -> Floats:
        known = self._known.get(name)
        if known is None:
            # A logarithm may differ in its last digit with its place in memory, and equal memories must stay equal.
            made = self._made(name)
            known = self._known[name] = made if name in WHOLE else np.round(made, EXACT_DIGITS)
        return known

    def _made(self, name: str) -> Floats:
        if name in MARKS:
            return marked(self._clues, name, self._numbers)
        if name in MEMORY_SIGNALS:
            return np.asarray(MEMORY_SIGNALS[name](self._clues, self._numbers), np.float64)
        if name == "said_then":
            return said_within(self._clues, self._numbers, self._stretches).astype(np.float64)
        if name[-2] in "+-":
            beside = at(self._fields[name[:-2]], stepped(self._numbers, self._clues.order, int(name[-2:])))
            return np.minimum(beside, MOST_BESIDE)
        field, _, form = name.partition(".")
        if form:
            return self._formed(field, form)
        found = self._fields[field][self._numbers]
        return np.minimum(found, MOST_AROUND) if field == "around" else found

    def _formed(self, field: str, form: str) -> Floats:
        """What is made of a field: the best of the conversation, or that of the turn before where it is a question."""
        if form == "answers":
            return self._primitive(f"{field}-1") * self._primitive("asked_before")
        best = best_of_each(self._fields[field], self._clues.columns.talks, self._numbers)
        return np.minimum(best, MOST_AROUND)


def _named_stretches(clues: Clues) -> list[Stretch]:
    """The stretches of time that the question names, in years of which there are memories."""
    first, last = (date.fromordinal(EPOCH_DAY + moment // DAY_MS).year for moment in first_and_last(clues.columns))
    return stretches(clues.question.asked, range(first, last + 1))


@lru_cache(maxsize=1024)
def _parts(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The traits and the primitives that a name is made of. Every question asks for the same names."""
    parts = name.split("*")
    traits = tuple(part[1:] for part in parts if part.startswith("?"))
    return traits, tuple(part for part in parts if not part.startswith("?"))
