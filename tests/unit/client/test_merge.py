import pytest
from modestream_client.answers import Answer, Notice, merge_answers, merge_by_rank
from modestream_client.failures import MemoryServiceError, MemoryTimeout, MemoryUnreachable
from modestream_client.hits import Hit


def hit(memory_id: str, user_id: str = "u1", score: float = 0.5) -> Hit:
    return Hit(
        memory_id=memory_id,
        turn_id="t",
        conversation_id="c",
        scope={"user_id": user_id, "project_id": "default"},
        type="episodic",
        mode="general",
        mode_source="fallback",
        role="user",
        speaker=None,
        text="text",
        occurred_at="2026-03-01T09:30:00Z",
        score=score,
        evidence=(),
        version=1,
        embedding_status="ready",
    )


def answer(
    *memory_ids: str, user_id: str = "u1", strategy: str = "hybrid", warnings: tuple[Notice, ...] = ()
) -> Answer:
    return Answer(tuple(hit(name, user_id) for name in memory_ids), warnings, ("general",), strategy)


def ids(found: Answer) -> list[str]:
    return [each.memory_id for each in found.hits]


def test_first_ranks_come_first_in_the_order_of_users() -> None:
    found = merge_answers({"b": answer("b1", "b2", "b3"), "a": answer("a1", "a2")}, 10, partial=False)
    assert ids(found) == ["b1", "a1", "b2", "a2", "b3"]


def test_scores_of_different_users_are_not_compared() -> None:
    low, high = [hit("low", score=0.1)], [hit("high", score=0.9)]
    assert [each.memory_id for each in merge_by_rank([low, high], 10)] == ["low", "high"]


def test_order_is_that_of_reciprocal_rank_fusion() -> None:
    rankings = [[hit(f"{user}{rank}") for rank in range(length)] for user, length in (("a", 4), ("b", 2), ("c", 7))]
    fused = sorted(
        ((1 / (60 + rank), each) for ranking in rankings for rank, each in enumerate(ranking)),
        key=lambda scored: -scored[0],
    )
    assert list(merge_by_rank(rankings, 100)) == [each for _, each in fused]


def test_merged_answer_has_at_most_top_k_hits() -> None:
    assert ids(merge_answers({"a": answer("a1", "a2"), "b": answer("b1", "b2")}, 3, partial=False)) == [
        "a1",
        "b1",
        "a2",
    ]


def test_hits_keep_their_scope() -> None:
    found = merge_answers({"a": answer("a1", user_id="a"), "b": answer("b1", user_id="b")}, 10, partial=False)
    assert [each.scope["user_id"] for each in found.hits] == ["a", "b"]


def test_answer_of_one_user_is_unchanged() -> None:
    alone = answer("a1")
    assert merge_answers({"a": alone}, 10, partial=False) is alone


def test_equal_warnings_are_deduplicated() -> None:
    degraded = Notice("degraded", "no vectors")
    found = merge_answers({u: answer(u, warnings=(degraded,)) for u in ("a", "b")}, 10, partial=False)
    assert found.warnings == (degraded,)


@pytest.mark.parametrize(("other", "merged"), [("hybrid", "hybrid"), ("lexical", "mixed")])
def test_strategy_is_mixed_if_the_answers_differ(other: str, merged: str) -> None:
    assert merge_answers({"a": answer("a"), "b": answer("b", strategy=other)}, 10, partial=False).strategy == merged


def test_first_failure_fails_the_call() -> None:
    outcomes: dict[str, Answer | BaseException] = {
        "a": answer("a1"),
        "b": MemoryTimeout("b is late"),
        "c": MemoryServiceError("internal", "c"),
    }
    with pytest.raises(MemoryTimeout, match="b is late"):
        merge_answers(outcomes, 10, partial=False)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (MemoryTimeout("late"), "timeout"),
        (MemoryUnreachable("gone"), "unavailable"),
        (MemoryServiceError("not_allowed", "no"), "not_allowed"),
    ],
)
def test_failure_is_a_warning_in_a_partial_answer(failure: Exception, code: str) -> None:
    found = merge_answers({"a": failure, "b": answer("b1")}, 10, partial=True)
    assert ids(found) == ["b1"]
    assert [warning.code for warning in found.warnings] == [code]
    assert "user a" in found.warnings[0].message


def test_partial_answer_without_any_answer_fails() -> None:
    with pytest.raises(MemoryTimeout):
        merge_answers({"a": MemoryTimeout("late"), "b": MemoryTimeout("late")}, 10, partial=True)


def test_defect_fails_a_partial_answer() -> None:
    with pytest.raises(ZeroDivisionError):
        merge_answers({"a": answer("a1"), "b": ZeroDivisionError()}, 10, partial=True)
