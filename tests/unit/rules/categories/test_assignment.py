"""Which categories an item is under, by vectors that are made by hand."""

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
from schemas.categories import Category, Taxonomy
from schemas.memories import CategoryAssignment
from schemas.understanding import FoundCategory
from schemas.vectors import Matrix, Vector

DIM = 64


def directions(count: int, seed: int = 0) -> Matrix:
    """Vectors that are a little alike, as texts of one language are."""
    rows = np.random.default_rng(seed).standard_normal((count, DIM)) + 0.4
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


ROWS = directions(24)
BACKGROUND = Background.of(ROWS)
TOPICS = directions(4, seed=1)
CATEGORIES = {name: TOPICS[place : place + 1] for place, name in enumerate(("health", "money", "music"))}


def near(*places: int, weight: float = 0.9) -> Vector:
    """A vector between some topics, and a direction of its own."""
    vector = weight * TOPICS[list(places)].mean(axis=0) + (1 - weight) * directions(1, seed=9)[0]
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


def under(vector: Vector) -> list[str]:
    [found] = match_categories(vector[np.newaxis], CATEGORIES, BACKGROUND)
    return [one.name for one in found]


def test_an_item_is_under_what_it_is_near_to_and_under_nothing_where_it_is_near_to_nothing() -> None:
    assert (under(near(0)), under(near(2)), under(directions(1, seed=5)[0])) == (["health"], ["music"], [])


def test_an_item_may_be_under_several_the_surest_first() -> None:
    [found] = match_categories((near(0, 2) + 0.1 * TOPICS[2])[np.newaxis], CATEGORIES, BACKGROUND)
    assert [one.name for one in found] == ["music", "health"]
    assert 1 >= found[0].confidence >= found[1].confidence >= MIN_CATEGORY_CONFIDENCE
    assert {one.by for one in found} == {"likeness"}


def test_what_is_nearer_to_topics_that_nobody_declared_is_not_under_a_category() -> None:
    between = near(0, weight=0.5) + ROWS[:3].sum(axis=0)
    assert under(near(0, weight=0.5)) == ["health"]
    assert under(np.asarray(between, np.float32)) == []


def test_a_category_is_as_near_as_the_nearest_of_its_texts() -> None:
    categories = CATEGORIES | {"health": np.concatenate([directions(6, seed=3), TOPICS[:1]])}
    [found] = match_categories(near(0)[np.newaxis], categories, BACKGROUND)
    assert [one.name for one in found] == ["health"]


def test_the_length_of_vectors_and_the_scale_of_the_space_change_nothing() -> None:
    assert match_categories(7 * near(0)[np.newaxis], CATEGORIES, BACKGROUND) == match_categories(
        near(0)[np.newaxis], CATEGORIES, BACKGROUND
    )
    # The same topics in a space where all vectors have much in common, as those of some models have.
    common = np.full(DIM, 0.3, np.float32)
    moved = {name: rows + common for name, rows in CATEGORIES.items()}
    background = Background.of(ROWS + common)
    [found] = match_categories((near(0) + common)[np.newaxis], moved, background)
    [nothing] = match_categories((directions(1, seed=5)[0] + common)[np.newaxis], moved, background)
    assert ([one.name for one in found], nothing) == (["health"], ())


def test_several_items_are_looked_at_as_each_by_itself() -> None:
    rows = np.stack([near(0), directions(1, seed=5)[0], near(1, 2)])
    assert match_categories(rows, CATEGORIES, BACKGROUND) == [
        match_categories(row[np.newaxis], CATEGORIES, BACKGROUND)[0] for row in rows
    ]


def test_no_item_is_under_more_than_a_few() -> None:
    many = {f"topic {number}": near(0)[np.newaxis] for number in range(MAX_CATEGORIES_PER_ITEM + 3)}
    [alone] = match_categories(near(0)[np.newaxis], {"topic 0": near(0)[np.newaxis]}, BACKGROUND)
    [found] = match_categories(near(0)[np.newaxis], many, BACKGROUND)
    assert len(alone) == 1
    assert len(found) <= MAX_CATEGORIES_PER_ITEM


@pytest.mark.parametrize(("rows", "categories"), [(0, CATEGORIES), (2, {})])
def test_without_items_or_categories_there_is_nothing(rows: int, categories: dict[str, Matrix]) -> None:
    assert match_categories(directions(rows), categories, BACKGROUND) == [()] * rows


def test_a_background_of_nothing_and_a_vector_of_nothing_break_nothing() -> None:
    nothing = Background.of(np.empty((0, DIM), np.float32))
    alone = {"health": TOPICS[:1]}
    for rows in (near(0)[np.newaxis], np.zeros((1, DIM), np.float32)):
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
def test_a_category_is_described_by_all_of_it_and_by_each_phrase(description: str, texts: list[str]) -> None:
    assert category_texts("health", description) == texts


def assigned(name: str, confidence: float, by: str = "likeness") -> CategoryAssignment:
    return CategoryAssignment.model_validate({"name": name, "confidence": confidence, "by": by})


def test_of_a_category_that_comes_twice_the_models_word_counts_and_else_the_surer_one() -> None:
    said, sure, unsure = assigned("a", 0.6, "model"), assigned("a", 0.9), assigned("a", 0.7)
    other = assigned("b", 0.5)
    assert merge_assignments([sure, other], [said]) == merge_assignments([said], [other, sure]) == (said, other)
    assert merge_assignments([unsure], [sure]) == merge_assignments([sure], [unsure]) == (sure,)


def test_another_look_keeps_what_a_model_said_of_categories_that_are_there() -> None:
    taxonomy = Taxonomy().with_categories(Category(name="a"), Category(name="b"), Category(name="c"))
    before = [assigned("a", 0.9, "model"), assigned("b", 0.9), assigned("gone", 0.9, "model")]
    fits = [assigned("c", 0.8), assigned("also gone", 0.8)]
    assert reassign_categories(before, fits, taxonomy) == (before[0], fits[0])


def test_of_what_a_model_says_only_what_there_is_counts_each_once_the_surest_first() -> None:
    found = [
        FoundCategory(name=name, confidence=sure) for name, sure in (("b", 0.4), ("a", 0.9), ("b", 0.7), ("x", 1.0))
    ]
    there = keep_known_categories(found, Taxonomy().with_categories(Category(name="a"), Category(name="b")))
    assert [(one.name, one.confidence, one.by) for one in top_model_categories(there)] == [
        ("a", 0.9, "model"),
        ("b", 0.7, "model"),
    ]
