"""Features of a memory apart from the match of its words: speaker, position, time, sentence labels. Pure.

Arrays have the shape of `numbers`. Fields are aggregated over neighbouring turns and whole conversations.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from agents.rules.cues.labels import SentenceLabel
from agents.rules.index.columns import DAY_MS, MISSING, FloatArray, IntArray, Mask, TurnOrder
from agents.rules.query.questions import QUESTION_TYPES
from agents.rules.ranking.query_features import QueryFeatures, matched_term_share
from agents.rules.text.dates import DateRange
from agents.rules.text.tokenizer import IDENTIFIER_JOINTS

MIN_SCALED_SCORE = -9.0
"""Less than any scaled field."""


def shift_turns(numbers: IntArray, order: TurnOrder, step: int) -> IntArray:
    """Return the turn `step` places after each turn (before, if negative), `MISSING` beyond the conversation."""
    towards = order.after if step > 0 else order.before
    turns = numbers
    for _ in range(abs(step)):
        turns = np.where(turns == MISSING, MISSING, towards[turns])
    return turns


def take_or_zero(field: FloatArray, numbers: IntArray) -> FloatArray:
    """Return the field of these memories, 0 for `MISSING`."""
    return np.where(numbers == MISSING, 0.0, field[numbers])


def conversation_best(field: FloatArray, conversations: IntArray, numbers: IntArray) -> FloatArray:
    """Return the maximum over each memory's conversation; its own value if it belongs to none."""
    conversation = conversations[numbers]
    # Skip all other conversations: they may have fifty thousand turns.
    needed = np.zeros(int(conversations.max(initial=MISSING)) + 2, np.bool_)
    needed[conversation] = True
    members = np.flatnonzero(needed[conversations])
    best = np.full(len(needed), MIN_SCALED_SCORE)
    np.maximum.at(best, conversations[members], field[members])
    return np.where(conversation == MISSING, field[numbers], best[conversation])


_MEASURE = re.compile(r"\d+[a-z]{1,2}")
"""A number with a unit, which is not an identifier: `5pm`, `2nd`, `10km`, `90s`."""

MIN_IDENTIFIER_DIGITS = 5
"""Shorter numbers are years, prices and times, which many turns have."""


def is_identifier(term: str) -> bool:
    """True if a term of `agents.rules.text.tokenizer` is an identifier."""
    if term.isdigit():
        return len(term) >= MIN_IDENTIFIER_DIGITS
    if any(character in IDENTIFIER_JOINTS for character in term):
        return True
    return any(map(str.isdigit, term)) and any(map(str.isalpha, term)) and not _MEASURE.fullmatch(term)


TYPICAL_LOG_LENGTH = 3.0
"""ln(1 + terms) of a typical turn, 19 terms; the zero of `length`."""

LONG_SHARE_OF_REPLIES = 0.3
"""Share of long memories from which on `?replies` is 1: an assistant that answers each message at length has half."""

RELATIVE_LENGTH_BOUNDS = (-2.0, 1.0)
"""Bounds of `relative_length`: a seventh and e times the mean."""

SHORT_QUESTION_TERMS, LONG_QUESTION_TERMS = 2, 7
"""Maximum terms of a `?short` question, minimum terms of a `?long` one."""

TYPICAL_MEMORY_COUNT, LARGE_SCALE = 250.0, 3.0
"""`?large` is ln(memories / 250) / 3: 0 for users like those of the training conversations, 0.9 for 4,000."""

LABEL_BITS: Mapping[str, int] = {str(label.name).lower(): label.value for label in SentenceLabel}
"""Sentence labels by their names in the weights file."""

EPOCH_DAY = 719_163
"""1970-01-01 as `date.toordinal` counts."""


def has_label(features: QueryFeatures, name: str, numbers: IntArray) -> FloatArray:
    """Return 1 for memories with this label, 0 for others and for `MISSING`."""
    mask = ((features.columns.labels[numbers] & LABEL_BITS[name]) != 0) & (numbers != MISSING)
    values: FloatArray = mask.astype(np.float64)
    return values


def said_in_ranges(features: QueryFeatures, numbers: IntArray, date_ranges: Sequence[DateRange]) -> Mask:
    """Return which memories date from one of these ranges or the day after it ("yesterday ...")."""
    days = features.columns.occurred_ms[numbers] // DAY_MS + EPOCH_DAY
    in_ranges = np.zeros(len(numbers), np.bool_)
    for first, last in date_ranges:
        in_ranges |= (days >= first) & (days <= last + 1)
    return in_ranges


def _length(features: QueryFeatures, numbers: IntArray) -> FloatArray:
    return np.log1p(features.columns.lengths[numbers].astype(np.float64)) - TYPICAL_LOG_LENGTH


def _relative_length(features: QueryFeatures, numbers: IntArray) -> FloatArray:
    """Return the logarithm of the length against the mean one of the boundary's memories, within bounds.

    Replies of 4,000 characters do not differ from those of 1,500 in anything relevant to ranking.
    """
    lengths = np.log1p(features.columns.lengths[numbers].astype(np.float64))
    return np.clip(lengths - features.derived.mean_log_length, *RELATIVE_LENGTH_BOUNDS)


def _relative_position(features: QueryFeatures, numbers: IntArray) -> FloatArray:
    """Return the position in the conversation, 0..1; 0 outside of conversations."""
    lasts = features.derived.last_positions[features.columns.conversations[numbers]]
    return np.maximum(features.order.positions[numbers], 0) / np.maximum(lasts, 1.0)


def _lateness(features: QueryFeatures, numbers: IntArray) -> FloatArray:
    """Return the relative time, 0 for the user's first memory and 1 for the last."""
    first, last = features.derived.time_range_ms
    return (features.columns.occurred_ms[numbers] - first) / max(last - first, 1)


def _named(features: QueryFeatures, numbers: IntArray) -> FloatArray:
    return features.named[numbers].astype(np.float64)


def _identifier(features: QueryFeatures, numbers: IntArray) -> FloatArray:
    terms = zip(features.question.terms, features.postings, strict=True)
    return matched_term_share([postings for term, postings in terms if is_identifier(term)], len(features.named))[
        numbers
    ]


MEMORY_FEATURES: Mapping[str, Callable[[QueryFeatures, IntArray], FloatArray]] = {
    "always": lambda _, numbers: np.ones(len(numbers)),
    "length": _length,
    "longer": lambda features, numbers: np.maximum(_length(features, numbers), 0.0),
    "length2": lambda features, numbers: _length(features, numbers) ** 2,
    "relative_length": _relative_length,
    "first": lambda features, numbers: features.order.positions[numbers] == 0,
    "second": lambda features, numbers: features.order.positions[numbers] == 1,
    "last": lambda features, numbers: features.order.after[numbers] == MISSING,
    "standing": _relative_position,
    "lateness": _lateness,
    "recency": lambda features, numbers: features.recency[numbers],
    "importance": lambda features, numbers: features.columns.importance[numbers],
    "named": _named,
    "only_named": lambda features, numbers: _named(features, numbers) * (len(features.question.named) == 1),
    "not_named": lambda features, numbers: (1.0 - _named(features, numbers)) * bool(features.question.named),
    "entity": lambda features, numbers: matched_term_share(features.entities, len(features.named))[numbers],
    "identifier": _identifier,
    "asked_before": lambda features, numbers: has_label(features, "question", features.order.before[numbers]),
    "asked_after": lambda features, numbers: has_label(features, "question", features.order.after[numbers]),
}
"""By name. `longer` is the length above the typical; `named`: the question names the speaker; `entity`: share of the
question's other names that the memory has, `identifier`: share of its identifiers."""

BINARY_MEMORY_FEATURES = frozenset(
    {"first", "second", "last", "named", "only_named", "not_named", "asked_before", "asked_after"}
)
"""Memory features that are 0 or 1."""

QUERY_INDEPENDENT_FEATURES = frozenset(
    {
        *LABEL_BITS,
        "always",
        "length",
        "longer",
        "length2",
        "relative_length",
        "first",
        "second",
        "last",
        "standing",
        "lateness",
        "importance",
    }
    | {"asked_before", "asked_after"}
)
"""Features that follow from the columns alone: the same for all questions and at all times until a write."""


def question_traits(features: QueryFeatures, date_ranges: Sequence[DateRange]) -> Mapping[str, float]:
    """Return the traits of a question, and of the memories that it is asked of, by name.

    Most are 0 or 1. `replies` is 1 among memories of which many are long, as an assistant's replies are, and 0 among
    short ones; `people` is 1 - `replies`. `large` is described above.
    """
    question = features.question
    terms = len(question.terms)
    replies = min(features.derived.long_share / LONG_SHARE_OF_REPLIES, 1.0)
    return {
        **dict.fromkeys(question.traits, 1.0),
        "foreign": float(question.foreign),
        "short": float(terms <= SHORT_QUESTION_TERMS),
        "long": float(terms >= LONG_QUESTION_TERMS),
        "dated": float(bool(date_ranges)),
        "replies": replies,
        "people": 1.0 - replies,
        "large": min(max(math.log(max(features.documents, 1) / TYPICAL_MEMORY_COUNT) / LARGE_SCALE, 0.0), 2.0),
    }


QUESTION_TRAITS = frozenset({*QUESTION_TYPES, "foreign", "short", "long", "dated", "replies", "people", "large"})
"""Names of all traits."""
