"""Features of a memory apart from the match of its words: speaker, position, time, sentence labels. Pure.

Arrays have the shape of `numbers`. Fields are aggregated over neighbouring turns and whole conversations.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from agents.rules.cues.labels import SentenceLabel
from agents.rules.index.columns import (
    DAY_MS,
    MISSING,
    ColumnArrays,
    DerivedColumns,
    FloatArray,
    IntArray,
    Mask,
    TurnOrder,
)
from agents.rules.index.vocabulary import Postings, bm25, idf
from agents.rules.query.questions import QUESTION_TYPES, Question
from agents.rules.text.dates import DateRange
from agents.rules.text.tokenizer import IDENTIFIER_JOINTS

# Inputs of ranking for one question: the fields computed for every memory of a boundary, on fixed scales. Pure.
#
# Scales are constants, not a mean and deviation over the user's memories, so that a value means the same for twenty
# memories and for fifty thousand. BM25 of neighbourhoods and conversations is computed from the postings of single
# turns.

ModelVariant = Literal["tokens", "vectors", "words"]

MODEL_VARIANTS: tuple[ModelVariant, ...] = ("tokens", "vectors", "words")
"""Variants of the ranking model, by available inputs: token and pooled vectors, pooled vectors only, words only."""

FeatureArrays = Mapping[str, FloatArray]
"""Fields by name; arrays of shape (memories,), by number."""


@dataclass(frozen=True, slots=True)
class QueryFeatures:
    """Arrays have shape (memories,); all data comes from memories of one boundary.

    `postings` has one entry per term of the question, `entities` one per name in it; `lexical` are the lexical fields.
    `dense` are cosines of the pooled vectors, of a cut text that of its best passage, and `whole` those of whole texts;
    `maxsim` are late interaction scores. They are None without usable vectors; their values are estimates for memories
    that are not `embedded`. `named` marks memories said by a speaker that the
    question names; `recency` is in 0..1.
    """

    question: Question
    derived: DerivedColumns
    documents: int
    postings: Sequence[Postings]
    lexical: FeatureArrays
    entities: Sequence[Postings]
    named: Mask
    recency: FloatArray
    embedded: Mask
    dense: FloatArray | None = None
    whole: FloatArray | None = None
    maxsim: FloatArray | None = None

    @property
    def variant(self) -> ModelVariant:
        """The model variant for the available inputs."""
        if self.dense is None:
            return "words"
        return "vectors" if self.maxsim is None else "tokens"

    @property
    def columns(self) -> ColumnArrays:
        return self.derived.columns

    @property
    def order(self) -> TurnOrder:
        return self.derived.order


FEATURE_DECIMALS = 9
"""Decimals of a feature: more than are significant, fewer than floating point has. The last digit of a logarithm may
depend on memory alignment; equal memories must get equal values."""


@dataclass(frozen=True, slots=True)
class Scale:
    """(value - middle) x steps."""

    middle: float
    steps: float

    def of(self, values: FloatArray) -> FloatArray:
        """Return scaled values, about -4..6, rounded."""
        return ((values - self.middle) * self.steps).round(FEATURE_DECIMALS)


FEATURE_SCALES: Mapping[str, Scale] = {
    "late": Scale(0.5, 12.0),
    "dense": Scale(0.3, 8.0),
    "words": Scale(0.0, 8.0),
    "around": Scale(0.0, 8.0),
    "conversation": Scale(0.0, 6.0),
    "cover": Scale(0.0, 8.0),
}
"""By field. One scaled unit is about one deviation over a user's turns, on our conversations."""

FIRST_STAGE_WEIGHTS: Mapping[str, float] = {"late": 1.0, "words": 0.5, "around": 0.5, "dense": 0.3}
"""Weights of the first-stage score, a sum of fields that ranks nearly as well; it selects the memories to rerank."""


def lexical_fields(derived: DerivedColumns, postings: Sequence[Postings], documents: int) -> FeatureArrays:
    """Return the fields `words`, `around`, `conversation` and `cover`."""
    scores = {
        "cover": covered_share(postings, len(derived.columns.live), documents),
        "words": bm25(postings, derived.columns.lengths, documents),
        "around": neighbourhood_bm25(postings, derived, documents),
        "conversation": conversation_bm25(postings, derived),
    }
    return {name: FEATURE_SCALES[name].of(values) for name, values in scores.items()}


def compute_fields(features: QueryFeatures) -> FeatureArrays:
    """Return the lexical fields, and `late` and `dense` if available."""
    vector = {"late": features.maxsim, "dense": features.dense}
    scaled = {name: FEATURE_SCALES[name].of(scores) for name, scores in vector.items() if scores is not None}
    return {**features.lexical, **scaled}


def first_stage_score(fields: FeatureArrays) -> FloatArray:
    """Return the weighted sum of the available first-stage fields, by number."""
    total = np.zeros(len(fields["words"]))
    for name, weight in FIRST_STAGE_WEIGHTS.items():
        if name in fields:
            total += weight * fields[name]
    return total


def neighbourhood_bm25(postings: Sequence[Postings], derived: DerivedColumns, documents: int) -> FloatArray:
    """Return BM25 of each turn concatenated with the turns before and after it, in 0..1."""
    order, size, spread = derived.order, len(derived.columns.live), []
    for term in postings:
        turns = np.concatenate([term.numbers, order.before[term.numbers], order.after[term.numbers]])
        counts = np.bincount(np.where(turns == MISSING, size, turns), np.tile(term.counts, 3), size)
        numbers = np.flatnonzero(counts[:size] > 0)
        spread.append(Postings(numbers, counts[numbers].astype(np.int64)))
    return bm25(spread, derived.neighbourhood_lengths, documents)


def conversation_bm25(postings: Sequence[Postings], derived: DerivedColumns) -> FloatArray:
    """Return BM25 of each memory's conversation as one text, in 0..1; 0 for memories outside of conversations."""
    lengths, counted = derived.conversation_lengths, []
    size = len(lengths)
    for term in postings:
        conversation = derived.columns.conversations[term.numbers]
        counts = np.bincount(np.where(conversation == MISSING, size, conversation), term.counts, size + 1)[:size]
        numbers = np.flatnonzero(counts > 0)
        counted.append(Postings(numbers, counts[numbers].astype(np.int64)))
    scores = np.append(bm25(counted, lengths, int((lengths > 0).sum())), 0.0)
    return scores[derived.conversation_places]


def covered_share(postings: Sequence[Postings], memories: int, documents: int) -> FloatArray:
    """Return the share of the question that each text covers, terms weighted by their idf, in 0..1.

    Of a cut text it is that of the passage that covers most.
    """
    shares = np.zeros(memories)
    weights = [idf(len(term.numbers), documents) for term in postings]
    total = sum(weights)
    if not total:
        return shares
    cut = np.zeros(memories, np.bool_)
    for term, weight in zip(postings, weights, strict=True):
        shares[term.numbers] += weight
        if term.passages is not None:
            cut[term.numbers[term.passages != 0]] = True
    if cut.any():
        shares[cut] = _best_passage_weights(postings, weights, np.flatnonzero(cut), memories)
    return shares / total


def matched_term_share(postings: Sequence[Postings], memories: int) -> FloatArray:
    """Return for each memory the share of these terms that it has; 0 without terms."""
    matched = np.zeros(memories)
    for term in postings:
        matched[term.numbers] += 1.0
    return matched / max(len(postings), 1)


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


@dataclass(frozen=True, slots=True)
class MemoryFeature:
    """One feature: `values` returns it for the memories with these numbers."""

    values: Callable[[QueryFeatures, IntArray], FloatArray]
    is_binary: bool = False
    """True if each value is 0 or 1."""
    is_query_independent: bool = False
    """True if it follows from the columns alone: the same for all questions, at any time, until a write."""


MEMORY_FEATURES: Mapping[str, MemoryFeature] = {
    "always": MemoryFeature(lambda _, numbers: np.ones(len(numbers)), is_query_independent=True),
    "length": MemoryFeature(_length, is_query_independent=True),
    "longer": MemoryFeature(
        lambda features, numbers: np.maximum(_length(features, numbers), 0.0), is_query_independent=True
    ),
    "length2": MemoryFeature(lambda features, numbers: _length(features, numbers) ** 2, is_query_independent=True),
    "relative_length": MemoryFeature(_relative_length, is_query_independent=True),
    "first": MemoryFeature(
        lambda features, numbers: features.order.positions[numbers] == 0, is_binary=True, is_query_independent=True
    ),
    "second": MemoryFeature(
        lambda features, numbers: features.order.positions[numbers] == 1, is_binary=True, is_query_independent=True
    ),
    "last": MemoryFeature(
        lambda features, numbers: features.order.after[numbers] == MISSING, is_binary=True, is_query_independent=True
    ),
    "standing": MemoryFeature(_relative_position, is_query_independent=True),
    "lateness": MemoryFeature(_lateness, is_query_independent=True),
    # It depends on the time of the question.
    "recency": MemoryFeature(lambda features, numbers: features.recency[numbers]),
    "importance": MemoryFeature(
        lambda features, numbers: features.columns.importance[numbers], is_query_independent=True
    ),
    "named": MemoryFeature(_named, is_binary=True),
    "only_named": MemoryFeature(
        lambda features, numbers: _named(features, numbers) * (len(features.question.named) == 1), is_binary=True
    ),
    "not_named": MemoryFeature(
        lambda features, numbers: (1.0 - _named(features, numbers)) * bool(features.question.named), is_binary=True
    ),
    "entity": MemoryFeature(
        lambda features, numbers: matched_term_share(features.entities, len(features.named))[numbers]
    ),
    "identifier": MemoryFeature(_identifier),
    "asked_before": MemoryFeature(
        lambda features, numbers: has_label(features, "question", features.order.before[numbers]),
        is_binary=True,
        is_query_independent=True,
    ),
    "asked_after": MemoryFeature(
        lambda features, numbers: has_label(features, "question", features.order.after[numbers]),
        is_binary=True,
        is_query_independent=True,
    ),
}
"""By name. `longer` is the length above the typical; `named`: the question names the speaker; `entity`: share of the
question's other names that the memory has, `identifier`: share of its identifiers."""

BINARY_MEMORY_FEATURES = frozenset(name for name, feature in MEMORY_FEATURES.items() if feature.is_binary)

QUERY_INDEPENDENT_FEATURES = frozenset(
    {*LABEL_BITS, *(name for name, feature in MEMORY_FEATURES.items() if feature.is_query_independent)}
)
"""Features of the columns alone, labels included."""


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


def _best_passage_weights(
    postings: Sequence[Postings], weights: Sequence[float], numbers: IntArray, memories: int
) -> FloatArray:
    """Return, for each of these cut texts, the greatest weight of the terms in one of its passages."""
    row_of = np.full(memories, MISSING, np.int64)
    row_of[numbers] = np.arange(len(numbers))
    masks = [term.passages for term in postings if term.passages is not None]
    bits = np.arange(int(max(mask.max(initial=0) for mask in masks)).bit_length())
    by_passage = np.zeros((len(numbers), len(bits)))
    for term, weight in zip(postings, weights, strict=True):
        if term.passages is not None:
            in_cut = np.flatnonzero(term.passages)
            has_term = (term.passages[in_cut, np.newaxis] >> bits) & 1
            by_passage[row_of[term.numbers[in_cut]]] += weight * has_term
    best: FloatArray = by_passage.max(axis=1)
    return best
