"""What two revisions find of the evidence, and the verdict."""

import pytest

from agents.rules.evaluation.questions import MIN_QUESTIONS, Outcome, Shares, report, shares_found

ALL, HALF, NONE = Shares(1, 1, 1), Shares(0.5, 0.5, 0.5), Shares(0, 0, 0)


def outcomes(current: Shares, other: Shares | None, number: int = 40, mode: str = "general") -> list[Outcome]:
    return [Outcome(memory_id=f"{mode}{n}", mode=mode, current=current, other=other) for n in range(number)]


def test_evidence_among_the_first_hits_counts() -> None:
    hits = [f"h{number}" for number in range(7)] + ["e1"]
    assert shares_found(["e1", "e2"], hits, ["e1", "e2"]) == Shares(0, 0.5, 1)


def test_only_ten_hits_count() -> None:
    assert shares_found(["e1"], [*(f"h{number}" for number in range(10)), "e1"], []).recall_at_10 == 0


def test_means_are_by_mode() -> None:
    modes = report([*outcomes(ALL, None, 3, "code"), *outcomes(NONE, None, 1, "journal")])["modes"]
    assert modes["code"]["current"]["recall_at_10"] == 1


def test_mean_of_all_is_over_questions() -> None:
    shown = report([*outcomes(ALL, None, 3, "code"), *outcomes(NONE, None, 1, "journal")])
    assert shown["all"]["current"]["recall_at_10"] == 0.75


def test_one_revision_has_no_verdict() -> None:
    assert "verdict" not in report(outcomes(ALL, None))


def test_no_questions_have_no_means() -> None:
    assert report([])["all"] == {"questions": 0}


@pytest.mark.parametrize(
    ("current", "other", "verdict"), [(ALL, HALF, "worse"), (HALF, ALL, "better"), (HALF, HALF, "no_difference")]
)
def test_verdict(current: Shares, other: Shares, verdict: str) -> None:
    assert report(outcomes(current, other))["verdict"] == verdict


def test_a_lost_question_among_many_is_no_difference() -> None:
    some = [*outcomes(ALL, ALL, 39), *outcomes(ALL, NONE, 1)]
    assert report(some)["verdict"] == "no_difference"


def test_less_in_contexts_is_worse_also_where_hits_are_more() -> None:
    assert report(outcomes(Shares(0, 0, 1), Shares(1, 1, 0)))["verdict"] == "worse"


def test_few_questions_have_no_verdict() -> None:
    assert report(outcomes(ALL, NONE, MIN_QUESTIONS - 1))["verdict"] == "too_few_questions"


def test_interval_is_around_the_mean() -> None:
    some = [*outcomes(ALL, ALL, 20), *outcomes(ALL, NONE, 20)]
    difference = report(some)["difference"]["recall_at_10"]
    assert difference["low"] < difference["mean"] < difference["high"]


def test_interval_is_that_of_a_normal_distribution_where_that_is_near() -> None:
    some = [*outcomes(ALL, ALL, 200), *outcomes(ALL, NONE, 200)]
    assert report(some)["difference"]["recall_at_10"]["low"] == pytest.approx(-0.549, abs=0.01)


def test_report_is_always_the_same() -> None:
    some = [*outcomes(ALL, ALL, 20), *outcomes(ALL, NONE, 20)]
    assert report(some) == report(some)
