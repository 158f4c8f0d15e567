"""How much each token of a question counts: rare pieces of words more, grammar and punctuation little. Pure.

The product weighs by what its word index counts; here, with nothing but the turns, pieces of words are counted.
"""

from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from schemas.vectors import Spans
from streams.adapters.embedding.inference.token_vectors import content_token_mask

Weights = NDArray[np.float32]
"""Shape (tokens,), sum 1."""

RARITY_POWER = 0.75
"""Of a piece's inverse document frequency; between 0.25 and 1 recall differs by less than half a point."""

STOP_WORD, PUNCTUATION = 0.2, 0.1
"""Against 1 for the rarest piece; by cross-validation, flat between 0.1 and 0.3."""


def pieces(text: str, spans: Spans) -> list[str]:
    """The text of each token, lower case."""
    return [text[start:end].lower() for start, end in spans]


def piece_counts(turns: Iterable[list[str]]) -> Counter[str]:
    """In how many turns each piece occurs."""
    counts: Counter[str] = Counter()
    for turn in turns:
        counts.update(set(turn))
    return counts


def token_weights(text: str, spans: Spans, counts: Counter[str], turns: int) -> Weights:
    """A weight for each token of a question among so many turns; idf as in BM25 (Robertson and Zaragoza 2009)."""
    found = pieces(text, spans)
    seen = np.array([counts[piece] for piece in found])
    rarity = np.log1p((turns - seen + 0.5) / (seen + 0.5)) / np.log1p(turns)
    grammar = np.where([any(map(str.isalnum, piece)) for piece in found], STOP_WORD, PUNCTUATION)
    weights = np.where(content_token_mask(text, spans), rarity**RARITY_POWER, grammar)
    shares: Weights = (weights / weights.sum()).astype(np.float32)
    return shares
