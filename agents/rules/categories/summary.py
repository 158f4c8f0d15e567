"""A category's anchors and summary without a language model, taken from what its members say. Pure.

Anchors are the members nearest to the centroid of all of them (Radev, Jing, Stys and Tam, "Centroid-based summarization
of multiple documents", 2004), each chosen for what it adds to those before it (maximal marginal relevance: Carbonell
and Goldstein, 1998). The summary is the texts of the first of them.
"""

from collections.abc import Iterable

import numpy as np

from agents.rules.clustering.normalise import normalise_rows
from schemas.categories import Category
from schemas.vectors import Matrix

MAX_ANCHORS = 8
"""Anchors of a category: as many as a person reads at a glance."""

MIN_CHANGES, MIN_CHANGED_SHARE = 3, 0.2
"""A summary is made anew when so many members have come or gone since, and at least this share of those it was made
of: below, a reader would see the same summary in other words."""

MAX_SUMMARY_CHARS = 600
"""Characters of a summary: some 150 tokens, which a context can spare for each of a few categories."""

MMR_LAMBDA = 0.7
"""The weight of nearness to the centroid against likeness to an anchor that is there already: the middle of what
Carbonell and Goldstein call best for a summary (0.3 to 0.7 for variety, above for nearness)."""


def is_summary_due(category: Category, size: int) -> bool:
    """Whether the summary of a category that has so many members now is to be made anew."""
    if size == 0 or not category.anchors:
        return size > 0 or category.size > 0 or len(category.anchors) > 0
    return abs(size - category.size) >= max(MIN_CHANGES, MIN_CHANGED_SHARE * category.size)


def select_anchors(vectors: Matrix, most: int = MAX_ANCHORS) -> list[int]:
    """Which rows stand for all, the most typical first. `vectors` has shape (members, dim); equal ones: the first."""
    if not len(vectors):
        return []
    unit = normalise_rows(vectors)
    nearness = unit @ normalise_rows(unit.mean(axis=0, keepdims=True))[0]
    chosen: list[int] = []
    likeness = np.zeros(len(unit))
    for _ in range(min(most, len(unit))):
        worth = MMR_LAMBDA * nearness - (1 - MMR_LAMBDA) * likeness
        worth[chosen] = -np.inf
        best = int(np.argmax(worth))
        chosen.append(best)
        likeness = np.maximum(likeness, unit @ unit[best])
    return chosen


def summary_of(texts: Iterable[str]) -> str | None:
    """The first of these texts, a line each, as far as there is room; None where there is none.

    A text that is too long by itself is cut off.
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
