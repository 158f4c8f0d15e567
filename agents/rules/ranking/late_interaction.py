"""Late interaction: select candidates in a large boundary, and weight the tokens of a question. Pure.

Weights are idf within the user's memories, and low for stop words.
"""

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from agents.rules.index.columns import MISSING, FloatArray, IntArray, Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.index.vocabulary import idf
from agents.rules.ranking.memory_features import FeatureArrays
from agents.rules.text.languages import detect_language, stems, stop_words_of
from agents.rules.text.tokenizer import fold, tokenize
from schemas.models.vectors import Matrix, Spans

MAX_LEXICAL_CANDIDATES = 300
"""Candidates taken by BM25 of the turn, and again by BM25 of the turn with its neighbours."""


def select_candidates(near: Sequence[str], lexical: FeatureArrays, columns: MemoryColumns, admitted: Mask) -> list[str]:
    """Return the ids of `near` (the ANN result), of the best by words, and of the neighbours of both.

    Their numbers are cached with the columns for lookups among them.
    """
    order = columns.order()
    nearest = np.array([columns.number_of[memory_id] for memory_id in near if memory_id in columns.number_of], np.int64)
    chosen = np.concatenate([nearest, _best(lexical["words"], admitted), _best(lexical["around"], admitted)])
    # One extra position at the end: `MISSING` is the last position of an array.
    mask = np.zeros(len(admitted) + 1, np.bool_)
    for numbers in (chosen, order.before[chosen], order.after[chosen]):
        mask[numbers] = True
    wide = np.flatnonzero(mask[:MISSING] & admitted)
    memory_ids = list(map(columns.id_of.__getitem__, wide.tolist()))
    columns.derived().keep_candidates(memory_ids, wide)
    return memory_ids


def _best(scores: FloatArray, admitted: Mask) -> IntArray:
    numbers = np.flatnonzero(admitted & (scores > 0))
    if len(numbers) <= MAX_LEXICAL_CANDIDATES:
        return numbers
    descending = -scores[numbers]
    last = np.partition(descending, MAX_LEXICAL_CANDIDATES - 1)[MAX_LEXICAL_CANDIDATES - 1]
    # The others need no order: they are most memories of a large boundary.
    first = np.flatnonzero(descending <= last)
    best: IntArray = numbers[first[np.argsort(descending[first], kind="stable")[:MAX_LEXICAL_CANDIDATES]]]
    return best


IDF_POWER = 0.75
"""Exponent of idf / maximal idf; 0 would weight all words alike, 1 by idf alone."""

STOP_WORD_WEIGHT = 0.2
"""Weight of a stop word; the rarest word has 1."""

PUNCTUATION_WEIGHT = 0.07

CONTINUATION_WEIGHT = 0.5
"""Factor for the tokens of a word after its first. The four values are the best by cross-validation on our
conversations (`docs/projection_report.md`)."""

_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")
_OUTSIDE = -1


def weight_query_tokens(
    rows: Matrix, spans: Spans, text: str, frequencies: Mapping[str, int], documents: int
) -> Matrix:
    """Scale the token vectors of a question by their weights, which sum to 1.

    `rows` has shape (tokens, dim), `spans` are the tokens' places in `text`. `frequencies` are the document frequencies
    of the question's terms among `documents` memories.
    """
    if not len(rows):
        return rows
    words = [(match.start(), match.end(), match.group()) for match in _WORD.finditer(text)]
    counts = _word_weights([written for _, _, written in words], frequencies, documents)
    token_weights: list[float] = []
    word, last = 0, _OUTSIDE
    for start, _ in spans.tolist():
        while word < len(words) and words[word][1] <= start:
            word += 1
        if word < len(words) and words[word][0] <= start:
            token_weights.append(counts[word] * (CONTINUATION_WEIGHT if word == last else 1.0))
            last = word
        else:
            token_weights.append(PUNCTUATION_WEIGHT)
            last = _OUTSIDE
    weights = np.array(token_weights, np.float32)
    weighted: Matrix = rows * (weights / weights.sum())[:, np.newaxis]
    return weighted


def _word_weights(words: Sequence[str], frequencies: Mapping[str, int], documents: int) -> list[float]:
    pieces = [tokenize(word) for word in words]
    flat = [piece for some in pieces for piece in some]
    language, stops = detect_language(flat), stop_words_of(flat)
    terms = list(frequencies)
    frequency_of = dict(zip(stems(terms, language), frequencies.values(), strict=True))
    stem_of = dict(zip(flat, stems(flat, language), strict=True))

    def weight(term: str) -> float:
        frequency = frequencies.get(term, frequency_of.get(stem_of[term], 0))
        return float((idf(frequency, documents) / math.log1p(2 * documents + 1)) ** IDF_POWER)

    return [
        STOP_WORD_WEIGHT if fold(word) in stops else max(map(weight, some), default=PUNCTUATION_WEIGHT)
        for word, some in zip(words, pieces, strict=True)
    ]
