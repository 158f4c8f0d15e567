"""Clusters are tight, of one topic, deterministic and complete."""

from itertools import count

import numpy as np
import pytest

from agents.rules.clustering.clustering import (
    MAX_CELL_SIZE,
    MAX_CLUSTER_SIZE,
    background_cosine,
    build_cells,
    find_clusters,
    normalise_rows,
    topic_stems,
)
from schemas.models.vectors import Matrix

TOMATOES = [f"Watered the tomatoes in the greenhouse on day {n}, they look healthy." for n in range(12)]
OTHERS = ["The violin needs a new bow.", "Deploy to fly.io on Friday.", "My sister moves to Lisbon.", "The car is red."]


def vectors_near(centres: Matrix, each: int, spread: float = 0.1) -> Matrix:
    """Return `each` vectors near each centre, round-robin."""
    random = np.random.default_rng(3)
    return np.concatenate([centres + spread * random.standard_normal(centres.shape) for _ in range(each)]).astype(
        np.float32
    )


def directions(count: int, dim: int = 64) -> Matrix:
    return np.eye(count, dim, dtype=np.float32) * 8


def test_near_memories_of_one_topic_are_one_cluster() -> None:
    vectors = vectors_near(directions(5), 12)
    topics = [topic_stems(text) for n in range(12) for text in (TOMATOES[n], *OTHERS)]
    found = find_clusters(vectors, topics)
    assert min(map(sorted, found)) == [5 * n for n in range(12)]


def test_memories_of_a_single_topic_are_clustered() -> None:
    [found] = find_clusters(vectors_near(directions(1), 12), [topic_stems(text) for text in TOMATOES])
    assert sorted(found) == list(range(12))


@pytest.mark.parametrize("base", [0.0, 0.75])
def test_threshold_adapts_to_the_background_cosine(base: float) -> None:
    """An embedder with high cosines for unrelated texts still separates clusters."""
    shift = np.zeros((1, 64), np.float32)
    shift[0, 63] = 8 * np.sqrt(base / (1 - base))
    vectors = vectors_near(directions(6), 4) + shift
    assert background_cosine(vectors / np.linalg.norm(vectors, axis=1, keepdims=True)) == pytest.approx(base, abs=0.05)
    found = find_clusters(vectors, [frozenset("abc")] * 24)
    assert sorted(map(sorted, found)) == [[row + 6 * n for n in range(4)] for row in range(6)]


def test_near_vectors_without_shared_words_are_no_cluster() -> None:
    topics = [frozenset({f"{n}-{word}" for word in range(5)}) for n in range(12)]
    assert find_clusters(vectors_near(directions(1), 12), topics) == []


def test_shared_words_without_near_vectors_are_no_cluster() -> None:
    assert find_clusters(directions(12), [topic_stems(text) for text in TOMATOES]) == []


def test_pair_is_a_cluster_only_with_min_size_two() -> None:
    vectors, topics = vectors_near(directions(1), 2), [topic_stems(text) for text in TOMATOES[:2]]
    assert find_clusters(vectors, topics) == []
    assert find_clusters(vectors, topics, min_size=2) == [[0, 1]]


def test_no_memories_have_no_clusters() -> None:
    assert find_clusters(np.zeros((0, 4), np.float32), []) == []
    assert find_clusters(np.zeros((4, 4), np.float32), [frozenset("abc")] * 4) == []


def test_remaining_memories_have_no_clusters() -> None:
    random = np.random.default_rng(5)
    vectors = vectors_near(directions(40), 20, spread=0.6)
    topics = [frozenset(random.choice(list("abcdefgh"), 5, replace=False).tolist()) for _ in range(len(vectors))]
    found = find_clusters(vectors, topics)
    clustered = [row for cluster in found for row in cluster]
    remaining = [row for row in range(len(vectors)) if row not in clustered]
    assert found
    assert len(remaining) > 3
    assert len(clustered) == len(set(clustered))
    assert find_clusters(vectors[remaining], [topics[row] for row in remaining]) == []
    assert find_clusters(vectors, topics) == found


def test_members_are_near_the_medoid_and_size_is_bounded() -> None:
    found = find_clusters(vectors_near(directions(2), 180, spread=0.05), [frozenset("abcd")] * 360)
    assert sum(map(len, found)) > 350
    assert max(map(len, found)) == MAX_CLUSTER_SIZE
    assert all(len({row % 2 for row in cluster}) == 1 for cluster in found)


def test_speaker_names_are_no_topic() -> None:
    assert topic_stems("Wow, Caroline paints sunsets", {"caroline"}) == topic_stems("Wow, paints sunsets")


def test_cells_are_bounded_and_keep_near_vectors_together() -> None:
    vectors = vectors_near(directions(8), 300, spread=0.2)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = build_cells(unit)
    assert max(map(len, found)) <= MAX_CELL_SIZE
    assert np.bincount(np.concatenate(found)).tolist() == [2] * 2400
    together = {(member, other) for cell in found for member in cell.tolist() for other in cell.tolist()}
    near = [(number, number + 8 * step) for number in range(0, 2000, 37) for step in range(1, 40)]
    assert sum(pair in together for pair in near) > 0.7 * len(near)


def test_equal_vectors_and_outliers_are_split() -> None:
    equal = np.ones((2000, 8), np.float32) / np.sqrt(8, dtype=np.float32)
    assert max(map(len, build_cells(equal))) <= MAX_CELL_SIZE
    outliers = np.eye(2000, 2000, dtype=np.float32)
    assert 4 <= len(build_cells(outliers)) <= 16


def test_stopped_search_returns_the_clusters_found() -> None:
    vectors, topics = vectors_near(directions(40), 40), [frozenset("abc")] * 1600
    complete = find_clusters(vectors, topics)
    calls = count()
    partial = find_clusters(vectors, topics, should_stop=lambda: next(calls) > 0)
    assert 0 < len(partial) < len(complete)


def test_rows_have_unit_length_unless_zero() -> None:
    rows = normalise_rows(np.array([[3, 4], [0, 0], [0, -0.5]], np.float32))
    assert rows.dtype == np.float32
    assert rows.tolist() == np.array([[0.6, 0.8], [0, 0], [0, -1]], np.float32).tolist()
