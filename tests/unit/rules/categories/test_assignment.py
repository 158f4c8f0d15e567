"""Category assignment, with synthetic vectors."""

import numpy as np
import pytest

from agents.rules.categories.assignment import (
    MAX_CATEGORIES_PER_ITEM,
    MIN_CATEGORY_CONFIDENCE,
    Background,
    category_texts,
    keep_known_categories,
    match_categories,
    merge_assignments,
    reassign_categories,
    top_model_categories,
)
from schemas.models.vectors import Matrix, Vector
from schemas.state.categories import Category, Taxonomy
from schemas.state.memories import CategoryAssignment
from schemas.state.understanding import FoundCategory

DIM = 64


def directions(count: int, seed: int = 0) -> Matrix:
    """Vectors with some similarity, like texts of one language."""
    rows = np.random.default_rng(seed).standard_normal((count, DIM)) + 0.4
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


ROWS = directions(24)
BACKGROUND = Background.of(ROWS)
TOPICS = directions(4, seed=1)
CATEGORIES = {name: TOPICS[place : place + 1] for place, name in enumerate(("health", "money", "music"))}


def vector_near(*places: int, weight: float = 0.9) -> Vector:
    """A mean of topics, mixed with a direction of its own."""
    vector = weight * TOPICS[list(places)].mean(axis=0) + (1 - weight) * directions(1, seed=9)[0]
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


def category_names(vector: Vector) -> list[str]:
    [found] = match_categories(vector[np.newaxis], CATEGORIES, BACKGROUND)
    return [category.name for category in found]


def test_item_gets_the_nearest_category_or_none() -> None:
    assert category_names(vector_near(0)) == ["health"]
    assert category_names(vector_near(2)) == ["music"]
    assert category_names(directions(1, seed=5)[0]) == []


def test_item_can_have_several_categories_by_confidence() -> None:
    [found] = match_categories((vector_near(0, 2) + 0.1 * TOPICS[2])[np.newaxis], CATEGORIES, BACKGROUND)
    assert [category.name for category in found] == ["music", "health"]
    assert 1 >= found[0].confidence >= found[1].confidence >= MIN_CATEGORY_CONFIDENCE
    assert {category.by for category in found} == {"likeness"}


def test_item_nearer_to_the_background_gets_no_category() -> None:
    between = vector_near(0, weight=0.5) + ROWS[:3].sum(axis=0)
    assert category_names(vector_near(0, weight=0.5)) == ["health"]
    assert category_names(np.asarray(between, np.float32)) == []


def test_category_matches_by_its_nearest_text() -> None:
    categories = CATEGORIES | {"health": np.concatenate([directions(6, seed=3), TOPICS[:1]])}
    [found] = match_categories(vector_near(0)[np.newaxis], categories, BACKGROUND)
    assert [category.name for category in found] == ["health"]


def test_vector_length_and_space_scale_do_not_matter() -> None:
    assert match_categories(7 * vector_near(0)[np.newaxis], CATEGORIES, BACKGROUND) == match_categories(
        vector_near(0)[np.newaxis], CATEGORIES, BACKGROUND
    )
    # The same topics in an anisotropic space: all vectors share a direction, as those of some models do.
    common = np.full(DIM, 0.3, np.float32)
    moved = {name: rows + common for name, rows in CATEGORIES.items()}
    background = Background.of(ROWS + common)
    [found] = match_categories((vector_near(0) + common)[np.newaxis], moved, background)
    [nothing] = match_categories((directions(1, seed=5)[0] + common)[np.newaxis], moved, background)
    assert [category.name for category in found] == ["health"]
    assert nothing == ()


def test_items_are_matched_independently() -> None:
    rows = np.stack([vector_near(0), directions(1, seed=5)[0], vector_near(1, 2)])
    assert match_categories(rows, CATEGORIES, BACKGROUND) == [
        match_categories(row[np.newaxis], CATEGORIES, BACKGROUND)[0] for row in rows
    ]


def test_categories_per_item_are_bounded() -> None:
    many = {f"topic {number}": vector_near(0)[np.newaxis] for number in range(MAX_CATEGORIES_PER_ITEM + 3)}
    [alone] = match_categories(vector_near(0)[np.newaxis], {"topic 0": vector_near(0)[np.newaxis]}, BACKGROUND)
    [found] = match_categories(vector_near(0)[np.newaxis], many, BACKGROUND)
    assert len(alone) == 1
    assert len(found) <= MAX_CATEGORIES_PER_ITEM


@pytest.mark.parametrize(("rows", "categories"), [(0, CATEGORIES), (2, {})])
def test_no_items_or_no_categories(rows: int, categories: dict[str, Matrix]) -> None:
    assert match_categories(directions(rows), categories, BACKGROUND) == [()] * rows


def test_empty_background_and_zero_vector() -> None:
    nothing = Background.of(np.empty((0, DIM), np.float32))
    alone = {"health": TOPICS[:1]}
    for rows in (vector_near(0)[np.newaxis], np.zeros((1, DIM), np.float32)):
        assert len(match_categories(rows, alone, nothing)) == 1


@pytest.mark.parametrize(
    ("description", "texts"),
    [
        ("", ["health"]),
        ("doctors", ["health: doctors"]),
        (
            "doctors, sports and sleep",
            ["health: doctors, sports and sleep", "health: doctors", "health: sports", "health: sleep"],
        ),
        ("Ärzte und Schlaf", ["health: Ärzte und Schlaf", "health: Ärzte", "health: Schlaf"]),
        ("sand, land", ["health: sand, land", "health: sand", "health: land"]),
    ],
)
def test_category_texts_are_description_and_phrases(description: str, texts: list[str]) -> None:
    assert category_texts("health", description) == texts


def assigned(name: str, confidence: float, by: str = "likeness") -> CategoryAssignment:
    return CategoryAssignment.model_validate({"name": name, "confidence": confidence, "by": by})


def test_merge_prefers_the_model_then_confidence() -> None:
    said, sure, unsure = assigned("a", 0.6, "model"), assigned("a", 0.9), assigned("a", 0.7)
    other = assigned("b", 0.5)
    assert merge_assignments([sure, other], [said]) == merge_assignments([said], [other, sure]) == (said, other)
    assert merge_assignments([unsure], [sure]) == merge_assignments([sure], [unsure]) == (sure,)


def test_reassignment_keeps_a_models_existing_categories() -> None:
    taxonomy = Taxonomy().with_categories(Category(name="a"), Category(name="b"), Category(name="c"))
    before = [assigned("a", 0.9, "model"), assigned("b", 0.9), assigned("gone", 0.9, "model")]
    fits = [assigned("c", 0.8), assigned("also gone", 0.8)]
    assert reassign_categories(before, fits, taxonomy) == (before[0], fits[0])


def test_model_categories_are_known_unique_and_ordered() -> None:
    found = [
        FoundCategory(name=name, confidence=sure) for name, sure in (("b", 0.4), ("a", 0.9), ("b", 0.7), ("x", 1.0))
    ]
    there = keep_known_categories(found, Taxonomy().with_categories(Category(name="a"), Category(name="b")))
    assert [(category.name, category.confidence, category.by) for category in top_model_categories(there)] == [
        ("a", 0.9, "model"),
        ("b", 0.7, "model"),
    ]
