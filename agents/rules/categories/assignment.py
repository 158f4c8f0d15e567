"""Which categories an item is under, by its vector. Pure.

Enters: the item's vector, the vectors of what each category is described by, and those of the background. Leaves: the
categories that fit, with how surely. An item's nearness to a category is its greatest cosine with one of the category's
phrases, taken by the scale of the space; it counts by itself, and by how far it is above the nearest of all other
topics: the other categories and the background.

The weights are those of a logistic regression over made-up sentences in seven categories and of none, with the vectors
of all-MiniLM-L6-v2 (`tests/builders/categories.py`). On seven other categories: precision 0.84, recall 0.68; the same
threshold on the cosine alone 0.73 and 0.80, words that both have added nothing. Likeness to a category's anchors was
left out: it moved no figure up, and what an item is under would depend on the order in which others came.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from agents.rules.clustering.normalise import normalise_rows
from schemas.categories import Taxonomy
from schemas.memories import CategoryAssignment
from schemas.understanding import FoundCategory
from schemas.vectors import Matrix, Vector

COHORT_SIZE = 3
"""Other topics whose mean an item's nearness is held against: one is often the same topic in other words."""

MIN_SPREAD = 1e-6
"""In a space where all topics are equally near nothing can be told; this keeps the numbers finite."""

NEARNESS_WEIGHT, MARGIN_WEIGHT, INTERCEPT = 0.75, 1.89, -1.65
"""The weights of the regression, in units of the space's spread, and its intercept."""

MIN_CATEGORY_CONFIDENCE = 0.5
"""The confidence from which an item is under a category."""

MAX_CATEGORIES_PER_ITEM = 4
"""Categories of one item: what fits more of them says little about each."""

MAX_PHRASES = 8
"""Phrases of a description that are looked at one by one, beside all of it."""

_BETWEEN = re.compile(r"[,;:.!?\n()•/]|\s(?:and|or|und|oder|y|o|et|ou|e)\s")


@dataclass(frozen=True, slots=True)
class Background:
    """The background's vectors in one space, shape (topics, dim), each of length 1; the scale of cosines there.

    `mean` and `std` are mean and standard deviation of the cosines of two different topics.
    """

    rows: Matrix
    mean: float
    std: float

    @classmethod
    def of(cls, rows: Matrix) -> Self:
        """The background by its vectors."""
        unit = normalise_rows(rows)
        cosines = (unit @ unit.T)[~np.eye(len(unit), dtype=np.bool_)]
        if not len(cosines):
            return cls(unit, 0.0, 1.0)
        return cls(unit, float(cosines.mean()), max(float(cosines.std()), MIN_SPREAD))


def category_texts(name: str, description: str) -> list[str]:
    """The texts that stand for a category: all of its description, and each phrase of it, with the name."""
    if not description.strip():
        return [name]
    phrases = dict.fromkeys(phrase for part in _BETWEEN.split(description) if len(phrase := part.strip()) > 1)
    parts = list(phrases)[:MAX_PHRASES] if len(phrases) > 1 else []
    return [f"{name}: {text}" for text in (description, *parts)]


def match_categories(
    vectors: Matrix, categories: Mapping[str, Matrix], background: Background
) -> list[tuple[CategoryAssignment, ...]]:
    """For each item the categories that fit it, the surest first; equally sure ones by name.

    `vectors` has shape (items, dim); a category's matrix has a row for each of its texts.
    """
    names = sorted(categories)
    if not names or not len(vectors):
        return [()] * len(vectors)
    unit = normalise_rows(vectors)
    near = np.stack([(unit @ normalise_rows(categories[name]).T).max(axis=1) for name in names], axis=1)
    sure = _confidences(near, unit @ background.rows.T, background)
    return [_chosen(names, row) for row in sure]


def keep_known_categories(found: Iterable[FoundCategory], taxonomy: Taxonomy) -> tuple[FoundCategory, ...]:
    """Of what a language model put a turn under, what there is."""
    return tuple(one for one in found if taxonomy.find(one.name) is not None)


def top_model_categories(found: Iterable[FoundCategory]) -> tuple[CategoryAssignment, ...]:
    """The surest of the categories that a language model put a turn under, each once."""
    sure = {one.name: one.confidence for one in sorted(found, key=lambda one: (one.confidence, one.name))}
    best = sorted(sure, key=lambda name: (-sure[name], name))[:MAX_CATEGORIES_PER_ITEM]
    return tuple(CategoryAssignment(name=name, confidence=sure[name], by="model") for name in best)


def merge_assignments(*several: Iterable[CategoryAssignment]) -> tuple[CategoryAssignment, ...]:
    """All of these, each category once: a model's word counts more, else the surer one; by name."""
    best: dict[str, CategoryAssignment] = {}
    for one in (each for some in several for each in some):
        before = best.get(one.name)
        if before is None or (one.by == "model", one.confidence) > (before.by == "model", before.confidence):
            best[one.name] = one
    return tuple(best[name] for name in sorted(best))


def reassign_categories(
    before: Iterable[CategoryAssignment], fits: Iterable[CategoryAssignment], taxonomy: Taxonomy
) -> tuple[CategoryAssignment, ...]:
    """What an item is under after it was looked at again: what fits now, and what a model had said."""
    said = [one for one in before if one.by == "model"]
    return tuple(one for one in merge_assignments(said, fits) if taxonomy.find(one.name) is not None)


def _confidences(near: Matrix, others: Matrix, background: Background) -> Matrix:
    """How sure each item is of each category, shape (items, categories)."""
    sure = np.empty_like(near)
    for place in range(near.shape[1]):
        rest = np.concatenate([others, np.delete(near, place, axis=1)], axis=1)
        nearest = np.sort(rest, axis=1)[:, -COHORT_SIZE:].mean(axis=1) if rest.shape[1] else background.mean
        lead = (near[:, place] - nearest) / background.std
        nearness = (near[:, place] - background.mean) / background.std
        sure[:, place] = 1 / (1 + np.exp(-(NEARNESS_WEIGHT * nearness + MARGIN_WEIGHT * lead + INTERCEPT)))
    return sure


def _chosen(names: Sequence[str], sure: Vector) -> tuple[CategoryAssignment, ...]:
    rounded = np.round(sure.astype(np.float64), 3)
    best = sorted(range(len(names)), key=lambda place: (-rounded[place], names[place]))[:MAX_CATEGORIES_PER_ITEM]
    return tuple(
        CategoryAssignment(name=names[place], confidence=float(rounded[place]))
        for place in best
        if rounded[place] >= MIN_CATEGORY_CONFIDENCE
    )
