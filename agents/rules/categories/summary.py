"""A category's anchors and summary without a language model, taken from what its members say. Pure.

Anchors are the members nearest to the centroid of all of them (Radev, Jing, Stys and Tam, "Centroid-based summarization
of multiple documents", 2004), each chosen for what it adds to those before it (maximal marginal relevance: Carbonell
and Goldstein, 1998). The summary is the texts of the first of them.
"""

from collections.abc import Iterable

import numpy as np

from agents.rules.clustering.normalise import of_length_one
from schemas.categories import Category
from schemas.vectors import Matrix

MOST_ANCHORS = 8
"""Anchors of a category: as many as a person reads at a glance."""

FEWEST_CHANGES, SHARE_CHANGED = 3, 0.2
"""A summary is made anew when so many members have come or gone since, and at least this share of those it was made
of: below, a reader would see the same summary in other words."""

LONGEST_SUMMARY = 600
"""Characters of a summary: some 150 tokens, which a context can spare for each of a few categories."""

RELEVANCE = 0.7
"""The weight of nearness to the centroid against likeness to an anchor that is there already: the middle of what
Carbonell and Goldstein call best for a summary (0.3 to 0.7 for variety, above for nearness)."""


def is_due(category: Category, size: int) -> bool:
    """Whether the summary of a category that has so many members now is to be made anew."""
    if size == 0 or not category.anchors:
        return size > 0 or category.size > 0 or len(category.anchors) > 0
    return abs(size - category.size) >= max(FEWEST_CHANGES, SHARE_CHANGED * category.size)


def anchors_of(vectors: Matrix, most: int = MOST_ANCHORS) -> list[int]:
    """Which rows stand for all, the most typical first. `vectors` has shape (members, dim); equal ones: the first."""
    if not len(vectors):
        return []
    unit = of_length_one(vectors)
    nearness = unit @ of_length_one(unit.mean(axis=0, keepdims=True))[0]
    chosen: list[int] = []
    likeness = np.zeros(len(unit))
    for _ in range(min(most, len(unit))):
        worth = RELEVANCE * nearness - (1 - RELEVANCE) * likeness
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
    room = LONGEST_SUMMARY
    for text in dict.fromkeys(" ".join(text.split()) for text in texts):
        if text and len(text) <= room:
            lines.append(text)
            room -= len(text) + 1
        elif text and not lines:
            return text[: LONGEST_SUMMARY - 1].rstrip() + "…"
    return "\n".join(lines) or None
