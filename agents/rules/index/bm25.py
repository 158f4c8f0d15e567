"""Okapi BM25 over the memories of one boundary: pure, with the statistics of that boundary alone passed in.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009). The result is given as a
share of what a text of mean length has that says every term of the question once, at most 1; so it means the same in
every answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.rules.index.columns import FloatArray, IntArray

K1 = 0.9
"""How soon the repetition of a term stops to count; low, because turns are short (measured on conversations)."""

B = 0.4
"""How much a long text pays for its length; the usual 0.75 punishes the turns that tell most."""


@dataclass(frozen=True, slots=True)
class Postings:
    """Where one term occurs: numbers of memories, and how often in each. Same shape, (memories,)."""

    numbers: IntArray
    counts: IntArray


def bm25(postings: Sequence[Postings], lengths: IntArray, documents: int) -> FloatArray:
    """The scores of all memories, shape of `lengths`, each in 0..1.

    `postings` has one entry for each term of the question, `lengths` the number of terms of each memory by its
    number, `documents` how many of those numbers are memories.
    """
    scores = np.zeros(len(lengths))
    whole = 0.0
    mean_length = max(float(lengths.sum()) / max(documents, 1), 1.0)
    for term in postings:
        weight = idf(len(term.numbers), documents)
        whole += weight
        damping = K1 * (1 - B + B * lengths[term.numbers] / mean_length)
        scores[term.numbers] += weight * (K1 + 1) * term.counts / (term.counts + damping)
    return np.minimum(scores / whole, 1.0) if whole else scores


def idf(frequency: int, documents: int) -> float:
    """How much a term tells that occurs in `frequency` of `documents` memories; never negative."""
    return float(np.log1p((documents - frequency + 0.5) / (frequency + 0.5)))
