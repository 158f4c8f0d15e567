from dataclasses import replace

import numpy as np
import pytest

from agents.rules.cues.labels import label_memory
from agents.rules.index.columns import Mask
from agents.rules.index.memory_columns import MemoryColumns, MemoryKind, MemoryRow, Trait
from agents.rules.query.plans import ModeSearch
from agents.rules.ranking.rank_fusion import (
    CROSS_LINGUAL_BIAS,
    MIN_OTHER_LANGUAGE_COUNT,
    FusionMethod,
    ModeSearchResult,
    ModeSearchStatus,
    VectorScores,
    choose_fusion_method,
    fuse_vector_scores,
    is_worth_asking,
    merge_cross_lingual,
    normal_scores,
    other_language_mask,
    split_by_language,
    strategy_of,
    topic_share,
)
from agents.rules.text.languages import detect_language
from agents.rules.text.tokenizer import tokenize
from schemas.models.vectors import MemoryFilter, Scored
from schemas.state.modes import Mode
from tests.builders.memories import made


@pytest.mark.parametrize(
    ("statuses", "strategy", "method"),
    [
        (["ok"], "hybrid", "weighted_mean"),
        (["empty"], "hybrid", "weighted_mean"),
        (["not_indexed"], "lexical", "weighted_mean"),
        (["unavailable"], "lexical", "weighted_mean"),
        (["ok", "ok"], "cross_mode", "rank_fusion"),
        (["ok", "empty"], "cross_mode", "rank_fusion"),
        (["empty", "empty"], "cross_mode", "rank_fusion"),
        (["ok", "not_indexed"], "cross_mode", "rank_fusion"),
        (["not_indexed", "empty"], "cross_mode", "lexical_merge"),
        (["ok", "unavailable", "ok"], "cross_mode", "lexical_merge"),
        (["unavailable", "empty"], "cross_mode", "lexical_merge"),
    ],
)
def test_statuses_decide_strategy_and_fusion_method(
    statuses: list[ModeSearchStatus], strategy: str, method: str
) -> None:
    assert strategy_of(statuses) == strategy
    assert choose_fusion_method(statuses) == method


def found(*cosines: float) -> list[Scored]:
    return [Scored(f"m{place}", cosine) for place, cosine in enumerate(cosines)]


def scores(cosines: list[float], count: int) -> list[float]:
    return [score.score for score in normal_scores(found(*cosines), count)]


def test_normal_scores_match_published_tables() -> None:
    """Blom's scores for five values: 1.18, 0.50, 0; negative ones are clipped to 0."""
    assert scores([0.9, 0.8, 0.7, 0.6, 0.5], 5) == pytest.approx([0.118, 0.050, 0, 0, 0], abs=1e-3)


def test_normal_scores_depend_on_ranks_only() -> None:
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


def test_normal_scores_keep_order_and_accept_no_results() -> None:
    assert [score.memory_id for score in normal_scores(found(0.5, 0.4), 9)] == ["m0", "m1"]
    assert normal_scores([], 0) == normal_scores([], 7) == []


def test_too_small_count_is_tolerated() -> None:
    assert scores([0.5, 0.4, 0.3], 1) == scores([0.5, 0.4, 0.3], 3)


KIND = MemoryKind((("user_id", "ana"),), "code", "episodic", "medium")
SEARCH = ModeSearch(Mode(name="code", embedder="tiny32", embedding_dim=32), MemoryFilter("ana"))


def memory_columns(*spaces: str | None) -> MemoryColumns:
    rows = [MemoryRow(number, f"m{number}", 0, 0, number, 5, 0.5, False, space) for number, space in enumerate(spaces)]
    return MemoryColumns(rows, {0: Trait(KIND, None, None)})


def result(space: str, cosines: dict[str, float], status: ModeSearchStatus = "ok") -> ModeSearchResult:
    return ModeSearchResult(SEARCH, status, space, len(cosines), [Scored(*pair) for pair in cosines.items()])


def fused(
    nearest: list[ModeSearchResult],
    method: FusionMethod,
    memories: MemoryColumns,
    admitted: Mask | None = None,
    **lexical: float,
) -> VectorScores:
    """Fuse the results; `lexical` are the lexical scores of some memories by id."""
    words = np.zeros(len(memories.columns.live))
    for memory_id, value in lexical.items():
        words[memories.number_of[memory_id]] = value
    return fuse_vector_scores(nearest, method, memories, memories.columns.live if admitted is None else admitted, words)


def dense(fused_scores: VectorScores) -> list[float]:
    assert fused_scores.dense is not None
    found: list[float] = fused_scores.dense.tolist()
    return found


def maxsim(fused_scores: VectorScores) -> list[float]:
    assert fused_scores.maxsim is not None
    found: list[float] = fused_scores.maxsim.tolist()
    return found


def test_single_space_keeps_its_cosines() -> None:
    fused_scores = fused([result("a", {"m0": 0.7, "m1": -0.2})], "weighted_mean", memory_columns("a", "a"))
    assert dense(fused_scores)[:2] == [0.7, -0.2]
    assert fused_scores.maxsim is None


def test_single_space_keeps_its_late_interaction_scores() -> None:
    nearest = replace(result("a", {"m0": 0.7, "m1": 0.2}), maxsim=[Scored("m1", 0.6), Scored("m0", 0.5)])
    assert maxsim(fused([nearest], "weighted_mean", memory_columns("a", "a")))[:2] == [0.5, 0.6]


def test_memory_not_found_gets_the_lowest_score() -> None:
    memories = memory_columns("a", "a", "a")
    assert dense(fused([result("a", {"m0": 0.7, "m1": 0.4})], "weighted_mean", memories))[2] == 0.4


def test_vectorless_memory_is_estimated_from_its_words() -> None:
    memories = memory_columns("a", "a", None, None, None)
    fused_scores = fused([result("a", {"m0": 0.8, "m1": 0.2})], "weighted_mean", memories, m2=0.4, m3=0.2)
    assert dense(fused_scores)[2:5] == pytest.approx([0.8, 0.5, 0.2])


def test_equal_ranks_in_equal_spaces_score_the_same() -> None:
    memories = memory_columns("a", "a", "b", "b", None)
    results = [result("a", {"m1": 0.9, "m0": 0.8}), result("b", {"m2": 0.2, "m3": 0.1})]
    found = dense(fused(results, "rank_fusion", memories))
    assert found[1] == found[2] > found[0] == found[3] == found[4]


def test_space_without_token_vectors_uses_its_cosine_ranks() -> None:
    memories = memory_columns("a", "a", "b", "b")
    first = replace(result("a", {"m1": 0.9, "m0": 0.8}), maxsim=[Scored("m0", 0.6), Scored("m1", 0.5)])
    found = maxsim(fused([first, result("b", {"m2": 0.2, "m3": 0.1})], "rank_fusion", memories))
    assert found[0] == found[2] > found[1] == found[3]


def test_vector_of_another_space_is_ignored() -> None:
    memories = memory_columns("a", "old", "a")
    nearest = [result("a", {"m1": 0.9, "m0": 0.8, "m2": 0.1}), result("b", {})]
    found = dense(fused(nearest, "rank_fusion", memories))
    assert found[0] > found[1] == found[2], "it takes no rank either"


def test_memory_not_admitted_takes_no_rank() -> None:
    memories = memory_columns("a", "a", "a")
    nearest = [result("a", {"m1": 0.9, "m0": 0.8, "m2": 0.1}), result("b", {})]
    admitted = memories.columns.live.copy()
    admitted[1] = False
    all_admitted = dense(fused(nearest, "rank_fusion", memories))
    without_m1 = dense(fused(nearest, "rank_fusion", memories, admitted))
    assert without_m1[0] == all_admitted[1] > all_admitted[0]


def test_deleted_results_are_skipped() -> None:
    results = [result("a", {"gone": 0.9, "m0": 0.8}), result("b", {})]
    assert dense(fused(results, "rank_fusion", memory_columns("a")))[0] >= 0


def whole(fused_scores: VectorScores) -> list[float]:
    assert fused_scores.whole is not None
    found: list[float] = fused_scores.whole.tolist()
    return found


def with_passages(nearest: ModeSearchResult, cosines: dict[str, float]) -> ModeSearchResult:
    """Return the result with cut texts, by the cosines of their best passages."""
    return replace(nearest, passages=[Scored(*pair) for pair in cosines.items()])


def test_the_best_passage_of_a_cut_text_replaces_its_cosine() -> None:
    nearest = with_passages(result("a", {"m0": 0.7, "m1": 0.2}), {"m1": 0.9})
    assert dense(fused([nearest], "weighted_mean", memory_columns("a", "a")))[:2] == [0.7, 0.9]


def test_the_cosine_of_a_whole_text_is_kept_beside_its_passages() -> None:
    nearest = with_passages(result("a", {"m0": 0.7, "m1": 0.2}), {"m1": 0.9})
    assert whole(fused([nearest], "weighted_mean", memory_columns("a", "a")))[:2] == [0.7, 0.2]


def test_without_cut_texts_wholes_are_all_there_is() -> None:
    fused_scores = fused([result("a", {"m0": 0.7, "m1": 0.2})], "weighted_mean", memory_columns("a", "a"))
    assert dense(fused_scores) == whole(fused_scores)


def test_passages_of_a_replaced_text_are_ignored() -> None:
    nearest = with_passages(result("a", {"m0": 0.7, "m1": 0.2}), {"m0": 0.5, "m1": 0.9})
    assert dense(fused([nearest], "weighted_mean", memory_columns("a", "old")))[1] != 0.9


def test_passages_of_deleted_memories_are_skipped() -> None:
    nearest = with_passages(result("a", {"m0": 0.7}), {"gone": 0.9})
    assert dense(fused([nearest], "weighted_mean", memory_columns("a")))[0] == 0.7


def test_cut_texts_of_several_spaces_are_ranked_by_their_best_passages() -> None:
    memories = memory_columns("a", "a", "b", "b")
    first = with_passages(result("a", {"m0": 0.9, "m1": 0.8}), {"m1": 0.9, "m0": 0.1})
    second = with_passages(result("b", {"m2": 0.9, "m3": 0.8}), {"m3": 0.5, "m2": 0.4})
    found = dense(fused([first, second], "rank_fusion", memories))
    assert found[1] == found[3] > found[0] == found[2]


def test_lexical_merge_uses_no_vectors() -> None:
    results = [result("a", {"m0": 0.9}), ModeSearchResult(SEARCH, "unavailable", "b", 1, missing="gone")]
    fused_scores = fused(results, "lexical_merge", memory_columns("a", "b"))
    assert fused_scores.dense is None
    assert fused_scores.maxsim is None
    assert not fused_scores.embedded.any()


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
def test_topic_share_counts_distinct_terms(question: list[str], topic: list[str], share: float) -> None:
    assert topic_share(question, topic) == pytest.approx(share)


ENGLISH, SPANISH, SHORT, JAPANESE = (
    "The kettle is in the kitchen.",
    "La tetera está en la cocina con las tazas.",
    "Claro que",
    "昨日、新しい自転車を買いました。",
)
IDS = ["english", "spanish", "short", "japanese"]


@pytest.fixture
def columns_in_languages() -> MemoryColumns:
    """One memory of each kind, numbered from 0, with the ids above."""
    memories = [made(text, number) for number, text in enumerate((ENGLISH, SPANISH, SHORT, JAPANESE))]
    rows = [
        MemoryRow(
            number,
            IDS[number],
            0,
            memory.occurred_ms,
            memory.source,
            3,
            0.5,
            False,
            "s",
            language,
            int(label_memory(memory)),
        )
        for number, memory in enumerate(memories)
        for language in [detect_language(tokenize(memory.text))]
    ]
    return MemoryColumns(rows, {0: Trait.of(memories[0])})


def test_english_question_masks_foreign_memories(columns_in_languages: MemoryColumns) -> None:
    assert other_language_mask(columns_in_languages, foreign=False).tolist()[:4] == [False, True, False, True]


def test_foreign_question_masks_memories_detected_as_english(columns_in_languages: MemoryColumns) -> None:
    assert other_language_mask(columns_in_languages, foreign=True).tolist()[:4] == [True, False, False, False]


def test_split_keeps_order_and_drops_unknown_ids(columns_in_languages: MemoryColumns) -> None:
    parts = split_by_language(["japanese", "gone", "english", "spanish", "short"], columns_in_languages, foreign=False)
    assert parts == {False: ["english", "short"], True: ["japanese", "spanish"]}


@pytest.mark.parametrize(
    ("other_language_count", "total", "expected"),
    [
        (0, 0, False),
        (0, 10, False),
        (1, 5, True),
        (2, 260, False),
        (3, 260, True),
        (MIN_OTHER_LANGUAGE_COUNT, 50_000, True),
    ],
)
def test_second_model_is_asked_only_for_enough_memories(other_language_count: int, total: int, expected: bool) -> None:
    assert is_worth_asking(other_language_count, total) == expected


def test_merge_returns_a_single_own_language_result_unchanged(columns_in_languages: MemoryColumns) -> None:
    found = [Scored("spanish", 0.1), Scored("gone", 0.5)]
    assert merge_cross_lingual({False: found}, columns_in_languages, foreign=False, bias=0.11, limit=1) == found


def test_merge_takes_own_memories_of_each_model_and_adds_the_bias(columns_in_languages: MemoryColumns) -> None:
    own = [Scored("spanish", 0.9), Scored("english", 0.5), Scored("short", 0.1)]
    other = [Scored("english", 0.8), Scored("spanish", 0.45), Scored("gone", 0.4), Scored("japanese", -0.25)]
    found = merge_cross_lingual({False: own, True: other}, columns_in_languages, foreign=False, bias=0.125, limit=9)
    assert found == [Scored("spanish", 0.575), Scored("english", 0.5), Scored("short", 0.1), Scored("japanese", -0.125)]
    assert (
        merge_cross_lingual({False: own, True: other}, columns_in_languages, foreign=False, bias=0.125, limit=2)
        == found[:2]
    )


def test_single_cross_lingual_result_is_kept_and_capped(columns_in_languages: MemoryColumns) -> None:
    found = merge_cross_lingual(
        {True: [Scored("short", 0.95), Scored("b", 0.5)]}, columns_in_languages, foreign=False, bias=0.125, limit=9
    )
    assert found == [Scored("short", 1.0), Scored("b", 0.625)]


def test_merge_breaks_ties_by_id(columns_in_languages: MemoryColumns) -> None:
    found = merge_cross_lingual(
        {False: [Scored("short", 0.5)], True: [Scored("japanese", 0.5)]},
        columns_in_languages,
        foreign=False,
        bias=0.0,
        limit=2,
    )
    assert [memory.memory_id for memory in found] == ["japanese", "short"]


def test_cross_lingual_bias_is_never_negative() -> None:
    assert all(value >= 0 for bias in CROSS_LINGUAL_BIAS.values() for value in bias)
