"""Clusters: tight, of one topic, the same every time, and none among what is left."""

from itertools import count

import numpy as np
import pytest

from agents.rules.clustering.clustering import MAX_CLUSTER_SIZE, find_clusters
from agents.rules.clustering.kmeans_cells import MAX_CELL_SIZE, build_cells
from agents.rules.clustering.knn import background_cosine, topic_stems
from schemas.vectors import Matrix

TOMATOES = [f"Watered the tomatoes in the greenhouse on day {n}, they look healthy." for n in range(12)]
OTHERS = ["The violin needs a new bow.", "Deploy to fly.io on Friday.", "My sister moves to Lisbon.", "The car is red."]


def around(centres: Matrix, each: int, spread: float = 0.1) -> Matrix:
    """So many vectors near each centre, in turns."""
    random = np.random.default_rng(3)
    return np.concatenate([centres + spread * random.standard_normal(centres.shape) for _ in range(each)]).astype(
        np.float32
    )


def directions(count: int, dim: int = 64) -> Matrix:
    return np.eye(count, dim, dtype=np.float32) * 8


def test_what_says_the_same_of_the_same_is_one_cluster() -> None:
    vectors = around(directions(5), 12)
    topics = [topic_stems(text) for n in range(12) for text in (TOMATOES[n], *OTHERS)]
    found = find_clusters(vectors, topics)
    assert min(map(sorted, found)) == [5 * n for n in range(12)]


def test_a_memory_with_nothing_else_in_it_is_clustered_too() -> None:
    [found] = find_clusters(around(directions(1), 12), [topic_stems(text) for text in TOMATOES])
    assert sorted(found) == list(range(12))


@pytest.mark.parametrize("base", [0.0, 0.75])
def test_near_is_told_from_what_is_usual_with_this_embedder(base: float) -> None:
    """An embedder that puts everything close together still tells apart."""
    shift = np.zeros((1, 64), np.float32)
    shift[0, 63] = 8 * np.sqrt(base / (1 - base))
    vectors = around(directions(6), 4) + shift
    assert background_cosine(vectors / np.linalg.norm(vectors, axis=1, keepdims=True)) == pytest.approx(base, abs=0.05)
    found = find_clusters(vectors, [frozenset("abc")] * 24)
    assert sorted(map(sorted, found)) == [[place + 6 * n for n in range(4)] for place in range(6)]


def test_what_is_near_and_shares_no_words_is_not_a_cluster() -> None:
    topics = [frozenset({f"{n}-{word}" for word in range(5)}) for n in range(12)]
    assert find_clusters(around(directions(1), 12), topics) == []


def test_what_shares_words_and_is_not_near_is_not_a_cluster() -> None:
    assert find_clusters(directions(12), [topic_stems(text) for text in TOMATOES]) == []


def test_two_are_no_cluster_unless_that_is_asked_for() -> None:
    vectors, topics = around(directions(1), 2), [topic_stems(text) for text in TOMATOES[:2]]
    assert find_clusters(vectors, topics) == []
    assert find_clusters(vectors, topics, min_size=2) == [[0, 1]]


def test_nothing_is_no_cluster() -> None:
    assert find_clusters(np.zeros((0, 4), np.float32), []) == []
    assert find_clusters(np.zeros((4, 4), np.float32), [frozenset("abc")] * 4) == []


def test_among_what_is_left_nothing_is_found() -> None:
    random = np.random.default_rng(5)
    vectors = around(directions(40), 20, spread=0.6)
    topics = [frozenset(random.choice(list("abcdefgh"), 5, replace=False).tolist()) for _ in range(len(vectors))]
    found = find_clusters(vectors, topics)
    taken = [place for cluster in found for place in cluster]
    left = [place for place in range(len(vectors)) if place not in taken]
    assert found
    assert len(left) > 3
    assert len(taken) == len(set(taken))
    assert find_clusters(vectors[left], [topics[place] for place in left]) == []
    assert find_clusters(vectors, topics) == found


def test_every_member_is_near_to_its_medoid_and_no_cluster_is_too_large() -> None:
    found = find_clusters(around(directions(2), 180, spread=0.05), [frozenset("abcd")] * 360)
    assert sum(map(len, found)) > 350
    assert max(map(len, found)) == MAX_CLUSTER_SIZE
    assert all(len({place % 2 for place in cluster}) == 1 for cluster in found)


def test_the_names_of_those_who_speak_are_no_topic() -> None:
    assert topic_stems("Wow, Caroline paints sunsets", {"caroline"}) == topic_stems("Wow, paints sunsets")


def test_cells_are_bounded_and_keep_together_what_is_near() -> None:
    vectors = around(directions(8), 300, spread=0.2)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = build_cells(unit)
    assert max(map(len, found)) <= MAX_CELL_SIZE
    assert np.bincount(np.concatenate(found)).tolist() == [2] * 2400
    together = {(one, other) for cell in found for one in cell.tolist() for other in cell.tolist()}
    near = [(one, one + 8 * step) for one in range(0, 2000, 37) for step in range(1, 40)]
    assert sum(pair in together for pair in near) > 0.7 * len(near)


def test_cells_of_equal_vectors_and_of_outliers_are_cut_too() -> None:
    equal = np.ones((2000, 8), np.float32) / np.sqrt(8, dtype=np.float32)
    assert max(map(len, build_cells(equal))) <= MAX_CELL_SIZE
    outliers = np.eye(2000, 2000, dtype=np.float32)
    assert 4 <= len(build_cells(outliers)) <= 16


def test_once_it_is_enough_what_was_found_so_far_is_given() -> None:
    vectors, topics = around(directions(40), 40), [frozenset("abc")] * 1600
    everything = find_clusters(vectors, topics)
    asked = count()
    some = find_clusters(vectors, topics, should_stop=lambda: next(asked) > 0)
    assert 0 < len(some) < len(everything)
