"""BM25 of turns with their neighbours and of conversations."""

import numpy as np
import pytest

from agents.rules.index.bm25 import Postings
from agents.rules.ranking.field_scores import conversation_bm25, matched_term_share, neighbourhood_bm25
from tests.builders.query_features import Line, query_features_of

TALK = [
    Line("Is there a violin?", conversation="c1"),
    Line("Yes, in the attic.", conversation="c1"),
    Line("Good night.", conversation="c1"),
    Line("Soup again.", conversation="c2"),
    Line("A violin and an attic.", conversation=None),
]


def test_neighbourhood_bm25_includes_adjacent_turns() -> None:
    features = query_features_of("violin attic", TALK)
    found = neighbourhood_bm25(features.postings, features.derived, features.documents)
    assert found[0] > 0
    assert found[1] > found[2] > found[3] == 0, "the last has one neighbour with one of the words, the fourth none"
    assert found[4] > 0, "what stands alone is read by itself"


def test_conversation_bm25_treats_a_conversation_as_one_text() -> None:
    features = query_features_of("violin attic", TALK)
    found = conversation_bm25(features.postings, features.derived)[:5].tolist()
    assert found[0] == found[1] == found[2] > 0
    assert found[3:] == [0, 0]


def test_matched_term_share() -> None:
    both, one = Postings(np.array([0, 2]), np.array([1, 1])), Postings(np.array([2]), np.array([9]))
    assert matched_term_share([both, one], 3).tolist() == [0.5, 0.0, 1.0]
    assert matched_term_share([], 3).tolist() == [0, 0, 0]


def test_bm25_without_memories() -> None:
    features = query_features_of("violin", [])
    assert neighbourhood_bm25(features.postings, features.derived, 0).tolist() == pytest.approx([])
    assert conversation_bm25(features.postings, features.derived).tolist() == []
