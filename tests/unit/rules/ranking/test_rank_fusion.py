"""Several vector spaces in one order, without comparing their cosines."""

from dataclasses import replace

import numpy as np
import pytest

from agents.rules.index.columns import Mask
from agents.rules.index.memory_columns import MemoryColumns, MemoryRow
from agents.rules.index.traits import MemoryKind, Trait
from agents.rules.query.vector_lanes import ModeSearch
from agents.rules.ranking.rank_fusion import (
    FusionMethod,
    LaneResult,
    LaneStatus,
    VectorScores,
    choose_fusion_method,
    fuse_vector_scores,
    normal_scores,
    strategy_of,
    topic_share,
)
from schemas.modes import Mode
from schemas.vectors import MemoryFilter, Scored


@pytest.mark.parametrize(
    ("sights", "strategy", "method"),
    [
        (["seen"], "hybrid", "weighted_mean"),
        (["empty"], "hybrid", "weighted_mean"),
        (["waiting"], "lexical", "weighted_mean"),
        (["blind"], "lexical", "weighted_mean"),
        (["seen", "seen"], "cross_mode", "rank_fusion"),
        (["seen", "empty"], "cross_mode", "rank_fusion"),
        (["empty", "empty"], "cross_mode", "rank_fusion"),
        (["seen", "waiting"], "cross_mode", "rank_fusion"),
        (["waiting", "empty"], "cross_mode", "lexical_merge"),
        (["seen", "blind", "seen"], "cross_mode", "lexical_merge"),
        (["blind", "empty"], "cross_mode", "lexical_merge"),
    ],
)
def test_what_can_be_seen_decides_how_it_is_ranked(sights: list[LaneStatus], strategy: str, method: str) -> None:
    assert (strategy_of(sights), choose_fusion_method(sights)) == (strategy, method)


def found(*cosines: float) -> list[Scored]:
    return [Scored(f"m{place}", cosine) for place, cosine in enumerate(cosines)]


def scores(cosines: list[float], count: int) -> list[float]:
    return [one.score for one in normal_scores(found(*cosines), count)]


def test_normal_scores_are_those_of_the_tables() -> None:
    """Blom's scores for five values: 1.18, 0.50, 0, and what lies below the mean is 0."""
    assert scores([0.9, 0.8, 0.7, 0.6, 0.5], 5) == pytest.approx([0.118, 0.050, 0, 0, 0], abs=1e-3)


def test_only_ranks_count_whatever_a_model_calls_near() -> None:
    assert scores([0.99, 0.98, 0.97], 40) == scores([0.3, 0.1, -0.2], 40)


def test_the_first_of_many_counts_more_than_the_first_of_few() -> None:
    firsts = [scores([0.5], count)[0] for count in (1, 2, 10, 100, 10_000)]
    assert firsts == sorted(firsts)
    assert firsts[0] == 0
    assert firsts[1] < firsts[-1] < 1


def test_equal_cosines_share_a_rank() -> None:
    first, second, third, last = scores([0.8, 0.5, 0.5, 0.2], 100)
    assert first > second == third > last
    assert scores([0.8, 0.5, 0.5000000001, 0.2], 100)[1:3] == [second, third]
    _, before, after, _ = scores([0.8, 0.5, 0.4, 0.2], 100)
    assert before > second > after, "which is the mean of theirs"


def test_ids_stay_in_their_order_and_nothing_is_nothing() -> None:
    assert [one.memory_id for one in normal_scores(found(0.5, 0.4), 9)] == ["m0", "m1"]
    assert normal_scores([], 0) == normal_scores([], 7) == []


def test_a_count_that_is_too_small_does_no_harm() -> None:
    assert scores([0.5, 0.4, 0.3], 1) == scores([0.5, 0.4, 0.3], 3)


KIND = MemoryKind((("user_id", "ana"),), "code", "episodic", "medium")
LANE = ModeSearch(Mode(name="code", embedder="tiny32", embedding_dim=32), MemoryFilter("ana"))


def roster(*spaces: str | None) -> MemoryColumns:
    rows = [MemoryRow(number, f"m{number}", 0, 0, number, 5, 0.5, False, space) for number, space in enumerate(spaces)]
    return MemoryColumns(rows, {0: Trait(KIND, None, None)})


def lane(space: str, cosines: dict[str, float], sight: LaneStatus = "seen") -> LaneResult:
    return LaneResult(LANE, sight, space, len(cosines), [Scored(*pair) for pair in cosines.items()])


def sight_of(
    nearest: list[LaneResult],
    method: FusionMethod,
    memories: MemoryColumns,
    admitted: Mask | None = None,
    **told: float,
) -> VectorScores:
    """What is seen where the words of some memories match as well as `told` says, by id."""
    words = np.zeros(len(memories.columns.live))
    for memory_id, value in told.items():
        words[memories.number_of[memory_id]] = value
    return fuse_vector_scores(nearest, method, memories, memories.columns.live if admitted is None else admitted, words)


def dense(sight: VectorScores) -> list[float]:
    assert sight.dense is not None
    found: list[float] = sight.dense.tolist()
    return found


def late(sight: VectorScores) -> list[float]:
    assert sight.maxsim is not None
    found: list[float] = sight.maxsim.tolist()
    return found


def test_in_one_space_the_cosines_stand_as_they_are() -> None:
    sight = sight_of([lane("a", {"m0": 0.7, "m1": -0.2})], "weighted_mean", roster("a", "a"))
    assert (dense(sight)[:2], sight.maxsim) == ([0.7, -0.2], None)


def test_late_interaction_stands_beside_the_cosines() -> None:
    nearest = replace(lane("a", {"m0": 0.7, "m1": 0.2}), maxsim=[Scored("m1", 0.6), Scored("m0", 0.5)])
    assert late(sight_of([nearest], "weighted_mean", roster("a", "a")))[:2] == [0.5, 0.6]


def test_what_is_far_off_counts_as_the_last_that_was_found() -> None:
    memories = roster("a", "a", "a")
    assert dense(sight_of([lane("a", {"m0": 0.7, "m1": 0.4})], "weighted_mean", memories))[2] == 0.4


def test_what_has_no_vector_yet_counts_as_near_as_its_words_tell() -> None:
    memories = roster("a", "a", None, None, None)
    sight = sight_of([lane("a", {"m0": 0.8, "m1": 0.2})], "weighted_mean", memories, m2=0.4, m3=0.2)
    assert dense(sight)[2:5] == pytest.approx([0.8, 0.5, 0.2])


def test_two_spaces_of_one_size_say_the_same_of_the_same_ranks() -> None:
    memories = roster("a", "a", "b", "b", None)
    both = [lane("a", {"m1": 0.9, "m0": 0.8}), lane("b", {"m2": 0.2, "m3": 0.1})]
    found = dense(sight_of(both, "rank_fusion", memories))
    assert found[1] == found[2] > found[0] == found[3] == found[4]


def test_a_space_without_token_vectors_is_told_by_its_cosines() -> None:
    memories = roster("a", "a", "b", "b")
    first = replace(lane("a", {"m1": 0.9, "m0": 0.8}), maxsim=[Scored("m0", 0.6), Scored("m1", 0.5)])
    found = late(sight_of([first, lane("b", {"m2": 0.2, "m3": 0.1})], "rank_fusion", memories))
    assert found[0] == found[2] > found[1] == found[3]


def test_a_vector_of_another_space_counts_for_nothing() -> None:
    memories = roster("a", "old", "a")
    nearest = [lane("a", {"m1": 0.9, "m0": 0.8, "m2": 0.1}), lane("b", {})]
    found = dense(sight_of(nearest, "rank_fusion", memories))
    assert found[0] > found[1] == found[2], "it takes no rank either"


def test_what_may_not_be_shown_takes_no_rank() -> None:
    memories = roster("a", "a", "a")
    nearest = [lane("a", {"m1": 0.9, "m0": 0.8, "m2": 0.1}), lane("b", {})]
    admitted = memories.columns.live.copy()
    admitted[1] = False
    everything = dense(sight_of(nearest, "rank_fusion", memories))
    without = dense(sight_of(nearest, "rank_fusion", memories, admitted))
    assert without[0] == everything[1] > everything[0]


def test_what_was_found_and_is_gone_is_passed_over() -> None:
    both = [lane("a", {"gone": 0.9, "m0": 0.8}), lane("b", {})]
    assert dense(sight_of(both, "rank_fusion", roster("a")))[0] >= 0


def test_a_merge_by_words_uses_no_vector_at_all() -> None:
    both = [lane("a", {"m0": 0.9}), LaneResult(LANE, "blind", "b", 1, missing="gone")]
    sight = sight_of(both, "lexical_merge", roster("a", "b"))
    assert sight.dense is None
    assert sight.maxsim is None
    assert not sight.embedded.any()


@pytest.mark.parametrize(
    ("question", "topic", "share"),
    [
        (["deploy", "target"], ["deploy", "target"], 1.0),
        (["deploy"], ["deploy", "target"], 0.5),
        (["deploy", "deploy"], ["deploy", "deploy", "target", "cloud"], 1 / 3),
        (["soup"], ["deploy"], 0.0),
        (["soup"], [], 0.0),
        ([], ["deploy"], 0.0),
    ],
)
def test_a_topic_matches_as_far_as_the_question_names_it(question: list[str], topic: list[str], share: float) -> None:
    assert topic_share(question, topic) == pytest.approx(share)
