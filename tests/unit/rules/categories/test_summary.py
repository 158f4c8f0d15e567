"""Extractive anchors and summaries, and when they are due."""

import numpy as np
import pytest

from agents.rules.categories.summary import MAX_SUMMARY_CHARS, is_summary_due, select_anchors, summary_of
from schemas.models.vectors import Matrix
from schemas.state.categories import Category


def rows(*values: tuple[float, ...]) -> Matrix:
    return np.array(values, np.float32)


def test_anchors_are_typical_first_then_diverse() -> None:
    first, twin, other, outlier = (1.0, 0.1, 0), (1.0, 0.11, 0), (0.7, 0.8, 0), (0, 0, 1.0)
    chosen = select_anchors(rows(first, twin, other, outlier), 3)
    assert chosen[0] in (0, 1, 2)
    assert 2 in chosen[:2], "what says something else comes before what says the same"
    assert not {0, 1} <= set(chosen[:2])


def test_first_anchor_is_nearest_to_the_centroid() -> None:
    assert select_anchors(rows((1, 0.4), (1, 0), (1, -0.4)), 1) == [1]


def test_anchors_are_bounded_and_ignore_vector_length() -> None:
    some = rows((1, 0.2, 0), (0.2, 1, 0), (0.1, 0.2, 1))
    assert sorted(select_anchors(some, 8)) == [0, 1, 2]
    assert select_anchors(some * np.array([[9], [1], [4]], np.float32), 8) == select_anchors(some, 8)
    assert select_anchors(np.empty((0, 3), np.float32), 8) == []
    assert select_anchors(np.zeros((2, 3), np.float32), 8) == [0, 1]


def test_summary_joins_the_texts_that_fit() -> None:
    assert summary_of(["One.", "Two\n lines.", "One."]) == "One.\nTwo lines."
    long = ["a" * 300, "b" * 400, "c" * 100]
    assert summary_of(long) == f"{long[0]}\n{long[2]}"
    assert summary_of([]) is summary_of(["", "  "]) is None


def test_long_first_text_is_truncated() -> None:
    cut = summary_of(["word " * 300]) or ""
    assert len(cut) <= MAX_SUMMARY_CHARS
    assert cut.endswith("word…")


@pytest.mark.parametrize(
    ("size", "now", "due"),
    [
        *[(0, 0, False), (0, 1, True), (1, 0, True), (5, 7, False), (5, 8, True), (5, 2, True)],
        *[(100, 119, False), (100, 120, True), (100, 80, True)],
    ],
)
def test_summary_is_due_after_enough_changes(size: int, now: int, due: bool) -> None:
    anchors = ("a",) if size else ()
    assert is_summary_due(Category(name="x", size=size, anchors=anchors), now) is due


def test_summary_is_due_for_members_or_anchors_alone() -> None:
    assert is_summary_due(Category(name="x", size=5), 5)
    assert is_summary_due(Category(name="x", anchors=("a",)), 0)
