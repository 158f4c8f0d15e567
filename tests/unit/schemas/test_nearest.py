import numpy as np

from schemas.models.vectors import Nearest, ScoredPassages

PASSAGES = ScoredPassages(np.array([0, 1]), np.array([0, 2]), np.array([0.9, 0.5]))
FOUND = Nearest(["a", "b"], np.array([0.9, 0.5]), passages=PASSAGES)


def test_slice_has_the_best_memories() -> None:
    assert FOUND[:1].memory_ids == ["a"]


def test_slice_has_all_scored_passages() -> None:
    assert FOUND[:1].passages is PASSAGES
