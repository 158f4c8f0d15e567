"""Okapi BM25 with the statistics of one boundary. Pure.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009). Scores are relative to a text
of mean length that contains every query term once, and capped at 1, so they are comparable between queries.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.rules.index.columns import FloatArray, IntArray

K1 = 0.9
"""Term frequency saturation; low, because turns are short (measured on conversations)."""

B = 0.4
"""Length normalisation; the usual 0.75 penalises the most informative turns."""


@dataclass(frozen=True, slots=True)
class Postings:
    """Postings of one term: numbers of memories and counts in each, both of shape (memories,).

    `passages` has, for each of these memories, a bit for every passage of its text that has the term; 0 for a text that
    is not cut. None if no text is.
    """

    numbers: IntArray
    counts: IntArray
    passages: IntArray | None = None


def bm25(postings: Sequence[Postings], lengths: IntArray, documents: int) -> FloatArray:
    """Return the scores of all memories in 0..1, in the shape of `lengths`.

    `postings` has one entry per query term, `lengths` the term count of each memory by number; `documents` counts the
    numbers in use.
    """
    scores = np.zeros(len(lengths))
    total_weight = 0.0
    mean_length = max(float(lengths.sum()) / max(documents, 1), 1.0)
    for term in postings:
        weight = idf(len(term.numbers), documents)
        total_weight += weight
        damping = K1 * (1 - B + B * lengths[term.numbers] / mean_length)
        scores[term.numbers] += weight * (K1 + 1) * term.counts / (term.counts + damping)
    return np.minimum(scores / total_weight, 1.0) if total_weight else scores


def idf(frequency: int, documents: int) -> float:
    """Return the inverse document frequency of a term in `frequency` of `documents` memories; never negative."""
    return float(np.log1p((documents - frequency + 0.5) / (frequency + 0.5)))
