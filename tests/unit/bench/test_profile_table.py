"""Rows of the profile, and its counters."""

import json

import pytest

from bench.harness.report import Report
from bench.profile.counters import Costs, Counters
from bench.profile.tables import Unit, report_costs, report_stages
from bench.profile.threads import CONSUMER, EVENT_LOOP, NATIVE, ThreadCounters

COSTS = Costs({"worker": 3.0, "embedder's process": 4.0, "broker": 1.0}, {EVENT_LOOP: 2.5}, 0.5, 0.25)


def _printed(unit: Unit) -> tuple[dict[str, str], dict[str, object]]:
    lines: list[str] = []
    report = Report(lines.append)
    report_costs(report, "short", unit, COSTS)
    report_stages(report, "short", {"ranking": 1.0, "reply": 3.0}, 17)
    report.print()
    *rows, _, values = lines
    return {row[:32].strip(): " ".join(row[32:].split()) for row in rows}, json.loads(values)


def test_rows_have_milliseconds_share_and_budget() -> None:
    rows, _ = _printed("turn")
    assert rows["worker"] == "3.00 ms 38% <= 1.5 ms"
    assert rows["broker"] == "1.00 ms 12% <= 0.4 ms"
    assert rows["all processes"] == "8.00 ms 100%"
    assert rows["worker: event loop"] == "2.50 ms 31%"
    assert rows["reply"] == "3.00 ms 75%"


def test_a_question_has_one_budget() -> None:
    rows, _ = _printed("question")
    assert [name for name, row in rows.items() if "<=" in row] == ["all processes"]
    assert rows["all processes"].endswith("<= 5.0 ms")


def test_values_are_named_for_programs() -> None:
    _, values = _printed("turn")
    assert values["short_worker"] == 3.0
    assert values["short_embedders_process"] == 4.0
    assert values["short_worker_event_loop"] == 2.5
    assert values["short_stage_reply"] == 3.0
    assert values["short_samples"] == 17


def test_nothing_measured_has_no_share() -> None:
    lines: list[str] = []
    report = Report(lines.append)
    report.cost("idle", "idle", 0.0, 0.0)
    report.print()
    assert lines[0].split() == ["idle", "0.00", "ms", "0%"]


def test_costs_are_differences_of_counters_for_each_turn() -> None:
    before = Counters(
        {"worker": 1.0}, {1: ThreadCounters(EVENT_LOOP, 1.0, 10, 4), 2: ThreadCounters(NATIVE, 5.0, 1, 1)}
    )
    after = Counters(
        {"worker": 3.0},
        {
            1: ThreadCounters(EVENT_LOOP, 2.0, 30, 6),
            3: ThreadCounters(NATIVE, 0.5, 2, 0),
            4: ThreadCounters(NATIVE, 0.25, 0, 0),
        },
    )
    costs = after.costs_since(before, 10)

    assert costs.process_ms == {"worker": pytest.approx(200.0)}
    assert costs.thread_ms[EVENT_LOOP] == pytest.approx(100.0)
    assert costs.thread_ms[NATIVE] == pytest.approx(75.0)
    assert costs.thread_ms[CONSUMER] == 0.0
    assert costs.voluntary_switches == 2.2
    assert costs.involuntary_switches == 0.2
