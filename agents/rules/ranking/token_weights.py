"""How much each token of a question counts in late interaction. Pure.

A token of a word that few of this user's memories have tells more than one of a word that all have; a stop word tells
little, punctuation next to nothing.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from agents.rules.index.bm25 import idf
from agents.rules.text.languages import detect_language
from agents.rules.text.stemming import stems
from agents.rules.text.stop_words import stop_words_of
from agents.rules.text.tokenizer import fold, tokenize
from schemas.vectors import Matrix, Spans

IDF_POWER = 0.75
"""What the share of the greatest idf is raised to: between counting all words alike and counting by idf alone."""

STOP_WORD_WEIGHT = 0.2
"""What a stop word counts, where the rarest word counts 1."""

PUNCTUATION_WEIGHT = 0.07
"""What punctuation counts."""

CONTINUATION_WEIGHT = 0.5
"""What a piece of a word after its first counts, beside the first: it says little by itself. The four values are those
that did best by cross-validation on our conversations (`docs/projection_report.md`)."""

_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")
_OUTSIDE = -1


def weight_query_tokens(
    rows: Matrix, spans: Spans, text: str, frequencies: Mapping[str, int], documents: int
) -> Matrix:
    """A question's token vectors, each as long as its token counts; the lengths sum to 1.

    `rows` has shape (tokens, dim), `spans` says where each stands in `text`. `frequencies` tells for the question's
    terms how many of the `documents` memories have them.
    """
    if not len(rows):
        return rows
    words = [(match.start(), match.end(), match.group()) for match in _WORD.finditer(text)]
    counts = _word_weights([word for _, _, word in words], frequencies, documents)
    weights = np.array(list(_token_weights(spans, words, counts)), np.float32)
    found: Matrix = rows * (weights / weights.sum())[:, np.newaxis]
    return found


def _token_weights(spans: Spans, words: Sequence[tuple[int, int, str]], counts: Sequence[float]) -> Iterator[float]:
    """The weight of each token by the word that it begins in."""
    place, last = 0, _OUTSIDE
    for start, _ in spans.tolist():
        while place < len(words) and words[place][1] <= start:
            place += 1
        if place < len(words) and words[place][0] <= start:
            yield counts[place] * (CONTINUATION_WEIGHT if place == last else 1.0)
            last = place
        else:
            yield PUNCTUATION_WEIGHT
            last = _OUTSIDE


def _word_weights(words: Sequence[str], frequencies: Mapping[str, int], documents: int) -> list[float]:
    pieces = [tokenize(word) for word in words]
    flat = [piece for some in pieces for piece in some]
    language, stops = detect_language(flat), stop_words_of(flat)
    asked = list(frequencies)
    known = dict(zip(stems(asked, language), frequencies.values(), strict=True))

    def weight(term: str) -> float:
        frequency = frequencies.get(term, known.get(stems([term], language)[0], 0))
        return float((idf(frequency, documents) / math.log1p(2 * documents + 1)) ** IDF_POWER)

    return [
        STOP_WORD_WEIGHT if fold(word) in stops else max(map(weight, some), default=PUNCTUATION_WEIGHT)
        for word, some in zip(words, pieces, strict=True)
    ]
