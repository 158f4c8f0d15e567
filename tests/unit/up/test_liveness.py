from pathlib import Path

import pytest

from streams.up.supervised import LivenessAnswer, LivenessMonitor, probe_liveness


def verdicts(answers: list[LivenessAnswer], age_s: float) -> list[bool]:
    liveness = LivenessMonitor()
    return [liveness.is_dead(answer, age_s) for answer in answers]


@pytest.mark.parametrize("age_s", [1.0, 1000.0])
def test_three_stuck_answers_in_a_row_are_dead_at_any_age(age_s: float) -> None:
    assert verdicts(["stuck", "stuck", "stuck"], age_s) == [False, False, True]


def test_good_answer_resets_the_count() -> None:
    assert verdicts(["stuck", "stuck", "live", "stuck", "silent", "stuck"], 1000.0) == [False] * 5 + [True]


def test_silence_counts_after_the_grace_period_only() -> None:
    assert verdicts(["silent"] * 9, 119.0) == [False] * 9
    assert verdicts(["silent"] * 3, 121.0) == [False, False, True]


def test_silence_after_an_answer_counts_at_any_age() -> None:
    answers: list[LivenessAnswer] = ["silent", "live", "silent", "silent", "silent", "silent", "silent", "silent"]
    assert verdicts(answers, 1.0) == [False] * 7 + [True]
    assert verdicts(answers[:5], 121.0) == [False] * 4 + [True]


def test_start_that_holds_a_worker_for_half_a_minute_is_no_death() -> None:
    assert not any(verdicts(["live", "silent", "silent", "silent", "silent", "live", "silent", "silent"], 30.0))


def test_silence_that_outlasts_the_start_is_a_death_at_its_end() -> None:
    liveness = LivenessMonitor()
    assert not liveness.is_dead("live", 80.0)
    assert [liveness.is_dead("silent", age_s) for age_s in (90.0, 100.0, 110.0, 120.0, 130.0)] == [False] * 4 + [True]


@pytest.mark.parametrize("text", [None, "", "no port", "1"])
async def test_missing_invalid_or_closed_port_is_silent(tmp_path: Path, text: str | None) -> None:
    port_file = tmp_path / "metrics.port"
    if text is not None:
        port_file.write_text(text)
    assert await probe_liveness(port_file) == "silent"
