"""Children of `up`: liveness, logs, backoff, and the child that is not started again."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from streams.up.child import MAX_LOG_BYTES, Child, rotate_log, tail_log
from streams.up.fleet import rotate_logs
from streams.up.layout import Layout
from streams.up.ownership import StartRefused
from streams.up.supervised import (
    LivenessAnswer,
    LivenessMonitor,
    RestartBackoff,
    ServiceSpec,
    SupervisedChild,
    probe_liveness,
)


def test_backoff_doubles_after_the_first_short_life_up_to_5_s() -> None:
    pace = RestartBackoff()
    assert [pace.pause_after(1.0) for _ in range(8)] == [0.0, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert pace.short_in_a_row == 8


def test_long_life_resets_the_backoff() -> None:
    pace = RestartBackoff()
    for _ in range(4):
        pace.pause_after(0.1)
    assert pace.pause_after(3600.0) == 0.0
    assert pace.short_in_a_row == 0
    assert [pace.pause_after(1.0) for _ in range(2)] == [0.0, 0.2]


@pytest.mark.parametrize("was_ready", [False, True])
async def test_child_that_refuses_its_settings_is_not_started_again(tmp_path: Path, *, was_ready: bool) -> None:
    layout, printed = Layout(tmp_path), list[str]()
    layout.create()
    program = f"import sys; print('a setting is wrong', file=sys.stderr); sys.exit({os.EX_CONFIG})"

    async def start() -> Child:
        return await Child.start(layout, "worker", (sys.executable, "-c", program), {})

    async def watch(_: Child) -> str:
        await asyncio.Event().wait()
        return ""

    spec = ServiceSpec("worker", layout.log("worker"), 1.0, start, watch)
    supervised = SupervisedChild(spec, printed.append)
    supervised.was_ready = was_ready
    with pytest.raises(StartRefused, match="refuses its settings"):
        await supervised.run()
    assert [line for line in printed if "setting is wrong" in line] == ["  a setting is wrong"]


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


def test_large_log_is_rotated_while_its_writer_continues(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"x" * (MAX_LOG_BYTES + 1))
        rotate_log(log)
        writer.write(b"next\n")
    assert log.read_bytes() == b"next\n"
    assert (tmp_path / "worker.log.1").stat().st_size == MAX_LOG_BYTES + 1


def test_small_or_absent_log_is_not_rotated(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    rotate_log(log)
    log.write_bytes(b"a few words\n")
    rotate_log(log)
    assert [path.name for path in tmp_path.iterdir()] == ["worker.log"]
    assert log.read_bytes() == b"a few words\n"


def test_tail_is_the_last_non_empty_lines_cut_to_a_width(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_bytes(b"first\n" * 5000 + b"Traceback\n\n  here\n" + b"y" * 1000 + b"\n\n")
    assert tail_log(log) == ["Traceback", "  here", "y" * 300]


async def test_audit_log_is_rotated_by_the_gateway_alone(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.create()
    layout.audit_log.write_bytes(b"x" * (MAX_LOG_BYTES + 1))
    layout.log("gateway").write_bytes(b"x" * (MAX_LOG_BYTES + 1))
    rotating = asyncio.create_task(rotate_logs(layout))
    await asyncio.sleep(0)
    rotating.cancel()
    assert sorted(path.name for path in layout.logs.iterdir()) == ["audit.jsonl", "gateway.log", "gateway.log.1"]
