"""What of a memory makes it likelier to answer, whatever its words: who said it, where it stands, what it looks like.

Pure. Arrays have the shape of the numbers that are asked for.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from agents.rules.cues.labels import SentenceLabel
from agents.rules.index.columns import MISSING, ColumnArrays, FloatArray, IntArray, Mask
from agents.rules.index.recency import DAY_MS
from agents.rules.query.question_types import QUESTION_TYPES
from agents.rules.ranking.conversation_features import last_positions
from agents.rules.ranking.lexical_features import matched_term_share
from agents.rules.ranking.query_features import QueryFeatures
from agents.rules.text.date_ranges import DateRange
from agents.rules.text.identifiers import is_identifier

TYPICAL_LOG_LENGTH = 3.0
"""ln(1 + terms) of a usual turn, 19 terms: what `length` counts from."""

SHORT_QUESTION_TERMS, LONG_QUESTION_TERMS = 2, 7
"""A question of so few terms is `?short`, one of so many is `?long`."""

TYPICAL_MEMORY_COUNT, LARGE_SCALE = 250.0, 3.0
"""`?large` is ln(memories / 250) / 3: nothing for users like those of the training conversations, 0.9 for 4,000."""

LABEL_BITS: Mapping[str, int] = {str(mark.name).lower(): mark.value for mark in SentenceLabel}
"""The marks by their names in the file of weights."""

EPOCH_DAY = 719_163
"""1970-01-01 as `date.toordinal` counts."""


def has_label(clues: QueryFeatures, name: str, numbers: IntArray) -> FloatArray:
    """1 where a memory has a mark; 0 for a number that is `MISSING`."""
    found: FloatArray = (((clues.columns.labels[numbers] & LABEL_BITS[name]) != 0) & (numbers != MISSING)).astype(
        np.float64
    )
    return found


def time_range_ms(columns: ColumnArrays) -> tuple[int, int]:
    """When the first and the last memory were said, in milliseconds since the epoch; 0 and 0 where there is none."""
    times = columns.occurred_ms[columns.live]
    return (int(times.min()), int(times.max())) if len(times) else (0, 0)


def said_in_ranges(clues: QueryFeatures, numbers: IntArray, stretches: Sequence[DateRange]) -> Mask:
    """Which memories were said in one of these stretches, or on the day after, when one speaks of yesterday."""
    days = clues.columns.occurred_ms[numbers] // DAY_MS + EPOCH_DAY
    found = np.zeros(len(numbers), np.bool_)
    for first, last in stretches:
        found |= (days >= first) & (days <= last + 1)
    return found


def _length(clues: QueryFeatures, numbers: IntArray) -> FloatArray:
    return np.log1p(clues.columns.lengths[numbers].astype(np.float64)) - TYPICAL_LOG_LENGTH


def _standing(clues: QueryFeatures, numbers: IntArray) -> FloatArray:
    """Where in its conversation, from 0 to 1; what is in none stands at its beginning."""
    lasts = last_positions(clues.order, clues.columns.conversations[numbers])
    return np.maximum(clues.order.positions[numbers], 0) / np.maximum(lasts, 1.0)


def _lateness(clues: QueryFeatures, numbers: IntArray) -> FloatArray:
    """How late it was said, from 0 for the first of all to 1 for the last."""
    first, last = time_range_ms(clues.columns)
    return (clues.columns.occurred_ms[numbers] - first) / max(last - first, 1)


def _named(clues: QueryFeatures, numbers: IntArray) -> FloatArray:
    return clues.named[numbers].astype(np.float64)


def _only_named(clues: QueryFeatures, numbers: IntArray) -> FloatArray:
    return _named(clues, numbers) * (len(clues.question.named) == 1)


def _not_named(clues: QueryFeatures, numbers: IntArray) -> FloatArray:
    return (1.0 - _named(clues, numbers)) * bool(clues.question.named)


def _identifier(clues: QueryFeatures, numbers: IntArray) -> FloatArray:
    named = [where for term, where in zip(clues.question.terms, clues.postings, strict=True) if is_identifier(term)]
    return matched_term_share(named, len(clues.named))[numbers]


MEMORY_FEATURES: Mapping[str, Callable[[QueryFeatures, IntArray], FloatArray]] = {
    "length": _length,
    "longer": lambda clues, numbers: np.maximum(_length(clues, numbers), 0.0),
    "length2": lambda clues, numbers: _length(clues, numbers) ** 2,
    "first": lambda clues, numbers: clues.order.positions[numbers] == 0,
    "second": lambda clues, numbers: clues.order.positions[numbers] == 1,
    "last": lambda clues, numbers: clues.order.after[numbers] == MISSING,
    "standing": _standing,
    "lateness": _lateness,
    "recency": lambda clues, numbers: clues.recency[numbers],
    "importance": lambda clues, numbers: clues.columns.importance[numbers],
    "named": _named,
    "only_named": _only_named,
    "not_named": _not_named,
    "entity": lambda clues, numbers: matched_term_share(clues.entities, len(clues.named))[numbers],
    "identifier": _identifier,
    "asked_before": lambda clues, numbers: has_label(clues, "question", clues.order.before[numbers]),
    "asked_after": lambda clues, numbers: has_label(clues, "question", clues.order.after[numbers]),
}
"""By name: `length` (`longer` above the usual) and where it stands, in its conversation and in time; `named` for what
somebody said whom the question names; `entity` for the share of the question's other names that it has, `identifier`
for that of its identifiers."""

BINARY_MEMORY_FEATURES = frozenset(
    {"first", "second", "last", "named", "only_named", "not_named", "asked_before", "asked_after"}
)
"""Those that are 0 or 1."""


def question_traits(clues: QueryFeatures, stretches: Sequence[DateRange]) -> Mapping[str, float]:
    """The traits of a question by name, most of them 1 or nothing at all."""
    question = clues.question
    terms = len(question.terms)
    return {
        **dict.fromkeys(question.traits, 1.0),
        "foreign": float(question.foreign),
        "short": float(terms <= SHORT_QUESTION_TERMS),
        "long": float(terms >= LONG_QUESTION_TERMS),
        "dated": float(bool(stretches)),
        "large": min(max(math.log(max(clues.documents, 1) / TYPICAL_MEMORY_COUNT) / LARGE_SCALE, 0.0), 2.0),
    }


QUESTION_TRAITS = frozenset({*QUESTION_TYPES, "foreign", "short", "long", "dated", "large"})
"""The names of all traits that a question may have."""
