"""Extractive anchors and summaries of categories, without a language model. Pure.

Anchors are the members nearest to the centroid (Radev, Jing, Stys and Tam, "Centroid-based summarization of multiple
documents", 2004), diversified by maximal marginal relevance (Carbonell and Goldstein, 1998). The summary is the texts
of the first anchors.
"""

from collections.abc import Iterable

import numpy as np

from agents.rules.clustering.knn import normalise_rows
from schemas.models.vectors import Matrix
from schemas.state.categories import Category

MAX_ANCHORS = 8
"""Anchors of a category: few enough to read at a glance."""

MIN_CHANGES, MIN_CHANGED_SHARE = 3, 0.2
"""Growth or shrinkage, as a number and as a share of the size then, that makes a summary outdated. After fewer changes
a new summary says the same in other words."""

MAX_SUMMARY_CHARS = 600
"""Characters of a summary: some 150 tokens, affordable in a context for each of a few categories."""

MMR_LAMBDA = 0.7
"""The weight of similarity to the centroid against similarity to chosen anchors: the middle of what Carbonell and
Goldstein call best for a summary (0.3 to 0.7 for variety, above for relevance)."""


def is_summary_due(category: Category, size: int) -> bool:
    """True if the summary must be made again, as the category now has `size` members."""
    if size == 0 or not category.anchors:
        return size > 0 or category.size > 0 or len(category.anchors) > 0
    return abs(size - category.size) >= max(MIN_CHANGES, MIN_CHANGED_SHARE * category.size)


def select_anchors(vectors: Matrix, limit: int = MAX_ANCHORS) -> list[int]:
    """Return the rows of the anchors, most typical first; ties go to the first. `vectors` has shape (members, dim)."""
    if not len(vectors):
        return []
    unit = normalise_rows(vectors)
    relevance = unit @ normalise_rows(unit.mean(axis=0, keepdims=True))[0]
    chosen: list[int] = []
    redundancy = np.zeros(len(unit))
    for _ in range(min(limit, len(unit))):
        score = MMR_LAMBDA * relevance - (1 - MMR_LAMBDA) * redundancy
        score[chosen] = -np.inf
        best = int(np.argmax(score))
        chosen.append(best)
        redundancy = np.maximum(redundancy, unit @ unit[best])
    return chosen


def summary_of(texts: Iterable[str]) -> str | None:
    """Join the texts that fit into `MAX_SUMMARY_CHARS`, one a line; None if there are none.

    A first text that is too long is truncated.
    """
    lines: list[str] = []
    room = MAX_SUMMARY_CHARS
    for text in dict.fromkeys(" ".join(text.split()) for text in texts):
        if text and len(text) <= room:
            lines.append(text)
            room -= len(text) + 1
        elif text and not lines:
            return text[: MAX_SUMMARY_CHARS - 1].rstrip() + "…"
    return "\n".join(lines) or None
