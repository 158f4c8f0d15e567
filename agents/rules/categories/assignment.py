"""Assign categories to items by their vectors. Pure.

Similarity to a category is the maximum cosine over its phrases, standardised by the space's mean and spread. A logistic
regression combines it with its margin over the nearest other topics: the other categories and the background.

Its weights were fitted to synthetic sentences of seven categories and of none, with vectors of all-MiniLM-L6-v2
(`tests/builders/categories.py`). On seven other categories: precision 0.84, recall 0.68; a threshold on the cosine
alone: 0.73 and 0.80. Shared words improved nothing; nor did similarity to a category's anchors, which would make
assignments depend on the order in which items arrive.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, Self

import numpy as np

from agents.rules.clustering.clustering import normalise_rows
from schemas.models.vectors import Matrix, Vector
from schemas.state.categories import Taxonomy
from schemas.state.memories import CategoryAssignment
from schemas.state.understanding import FoundCategory

BACKGROUND_TOPICS: tuple[str, ...] = (
    "food and cooking", "sports and health", "work meetings and colleagues", "family and relatives",
    "travel and holidays", "money and shopping", "films, books and music", "computers and software",
    "weather and nature", "politics and history", "home and furniture", "cars and transport", "school and studies",
    "feelings and moods", "friends and parties", "animals", "science and mathematics", "clothes and fashion",
    "law and contracts", "languages and writing", "art and photography", "time and calendar",
    "religion and traditions", "games and hobbies",
)  # fmt: skip
"""Everyday life and work, in the few words that users describe categories with. After a change of this list the
weights of `agents.rules.categories.assignment` must be fitted again."""


COHORT_SIZE = 3
"""Nearest other topics averaged for the margin: a single one is often the same topic in other words."""

MIN_SPREAD = 1e-6
"""Lower bound of the standard deviation, for a space where all topics are equally similar."""

SIMILARITY_WEIGHT, MARGIN_WEIGHT, INTERCEPT = 0.75, 1.89, -1.65
"""The weights of the regression, in standard deviations of the space, and its intercept."""

MIN_CATEGORY_CONFIDENCE = 0.5

MAX_CATEGORIES_PER_ITEM = 4
"""Maximum categories of one item: an item that fits more says little about each."""


class FilingLimits(NamedTuple):
    """The confidence from which an item is in a category, and in how many it can be."""

    min_confidence: float = MIN_CATEGORY_CONFIDENCE
    max_categories: int = MAX_CATEGORIES_PER_ITEM


FILING_LIMITS = FilingLimits()

MAX_PHRASES = 8
"""Maximum phrases of a description embedded separately, in addition to the whole description."""

_PHRASE_SEPARATOR = re.compile(r"[,;:.!?\n()•/]|\s(?:and|or|und|oder|y|o|et|ou|e)\s")


@dataclass(frozen=True, slots=True)
class Background:
    """The background topics' vectors in one space, shape (topics, dim), each of length 1.

    `mean` and `std` are mean and standard deviation of the cosines between different topics.
    """

    rows: Matrix
    mean: float
    std: float

    @classmethod
    def of(cls, rows: Matrix) -> Self:
        """Normalise the rows and measure their cosines."""
        unit = normalise_rows(rows)
        cosines = (unit @ unit.T)[~np.eye(len(unit), dtype=np.bool_)]
        if not len(cosines):
            return cls(unit, 0.0, 1.0)
        return cls(unit, float(cosines.mean()), max(float(cosines.std()), MIN_SPREAD))


def category_texts(name: str, description: str) -> list[str]:
    """Return the texts to embed for a category: its description and each phrase of it, prefixed with the name."""
    if not description.strip():
        return [name]
    pieces = _PHRASE_SEPARATOR.split(description)
    phrases = dict.fromkeys(phrase for piece in pieces if len(phrase := piece.strip()) > 1)
    parts = list(phrases)[:MAX_PHRASES] if len(phrases) > 1 else []
    return [f"{name}: {text}" for text in (description, *parts)]


def match_categories(
    vectors: Matrix, categories: Mapping[str, Matrix], background: Background, limits: FilingLimits = FILING_LIMITS
) -> list[tuple[CategoryAssignment, ...]]:
    """Return for each item the matching categories within the limits, by falling confidence, then by name.

    `vectors` has shape (items, dim); a category's matrix has a row for each of its texts.
    """
    names = sorted(categories)
    if not names or not len(vectors):
        return [()] * len(vectors)
    unit = normalise_rows(vectors)
    similarity = np.stack([(unit @ normalise_rows(categories[name]).T).max(axis=1) for name in names], axis=1)
    background_similarity = unit @ background.rows.T
    confidences = np.empty_like(similarity)
    for number in range(similarity.shape[1]):
        rest = np.concatenate([background_similarity, np.delete(similarity, number, axis=1)], axis=1)
        nearest = np.sort(rest, axis=1)[:, -COHORT_SIZE:].mean(axis=1) if rest.shape[1] else background.mean
        margin = (similarity[:, number] - nearest) / background.std
        scaled = (similarity[:, number] - background.mean) / background.std
        confidences[:, number] = 1 / (1 + np.exp(-(SIMILARITY_WEIGHT * scaled + MARGIN_WEIGHT * margin + INTERCEPT)))
    return [_top_categories(names, row, limits) for row in confidences]


def keep_known_categories(categories: Iterable[FoundCategory], taxonomy: Taxonomy) -> tuple[FoundCategory, ...]:
    """Drop the categories that a language model made up; one that was renamed since stays, under its earlier name."""
    return tuple(assignment for assignment in categories if taxonomy.find_current(assignment.name) is not None)


def top_model_categories(categories: Iterable[FoundCategory]) -> tuple[CategoryAssignment, ...]:
    """Return the categories that a language model is surest of, each once."""
    confidences = {
        assignment.name: assignment.confidence
        for assignment in sorted(categories, key=lambda assignment: (assignment.confidence, assignment.name))
    }
    best = sorted(confidences, key=lambda name: (-confidences[name], name))[:MAX_CATEGORIES_PER_ITEM]
    return tuple(CategoryAssignment(name=name, confidence=confidences[name], by="model") for name in best)


def merge_assignments(*assignments: Iterable[CategoryAssignment]) -> tuple[CategoryAssignment, ...]:
    """Merge assignments, sorted by name. Of two for one category, a model's wins, else the one of higher confidence."""
    best: dict[str, CategoryAssignment] = {}
    for assignment in chain.from_iterable(assignments):
        before = best.get(assignment.name)
        if before is None or (assignment.by == "model", assignment.confidence) > (
            before.by == "model",
            before.confidence,
        ):
            best[assignment.name] = assignment
    return tuple(best[name] for name in sorted(best))


def rename_assignments(assignments: Iterable[CategoryAssignment], taxonomy: Taxonomy) -> tuple[CategoryAssignment, ...]:
    """Return the assignments under the current names of their categories, without those of deleted ones."""
    current = ((assignment, taxonomy.find_current(assignment.name)) for assignment in assignments)
    return merge_assignments(
        assignment.model_copy(update={"name": now.name}) for assignment, now in current if now is not None
    )


def reassign_categories(
    before: Iterable[CategoryAssignment], matched: Iterable[CategoryAssignment], taxonomy: Taxonomy
) -> tuple[CategoryAssignment, ...]:
    """Replace earlier assignments by `matched`; a model's assignments stay while their category exists."""
    by_model = rename_assignments([assignment for assignment in before if assignment.by == "model"], taxonomy)
    return tuple(
        assignment for assignment in merge_assignments(by_model, matched) if taxonomy.find(assignment.name) is not None
    )


def _top_categories(names: Sequence[str], confidences: Vector, limits: FilingLimits) -> tuple[CategoryAssignment, ...]:
    rounded = np.round(confidences.astype(np.float64), 3)
    best = sorted(range(len(names)), key=lambda number: (-rounded[number], names[number]))[: limits.max_categories]
    return tuple(
        CategoryAssignment(name=names[number], confidence=float(rounded[number]))
        for number in best
        if rounded[number] >= limits.min_confidence
    )
