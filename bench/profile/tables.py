"""Rows of the profile: processes, threads and stages with their milliseconds, shares and budgets."""

from collections.abc import Mapping
from typing import Literal

from bench.harness.report import Report
from bench.profile.counters import Costs

Unit = Literal["turn", "question"]

ALL = "all processes"

BUDGETS: Mapping[Unit, Mapping[str, float]] = {"turn": {"worker": 1.5, "broker": 0.4}, "question": {ALL: 5.0}}
"""Milliseconds of processor time: of a turn beside the model, of a question in all."""


def report_costs(report: Report, key: str, unit: Unit, costs: Costs) -> None:
    """Add the processes, and the threads and context switches of the worker."""
    for name, ms in (*costs.process_ms.items(), (ALL, costs.total_ms)):
        report.cost(_key(key, name), name, ms, costs.total_ms, _budget(unit, name))
    for kind, ms in costs.thread_ms.items():
        report.cost(_key(key, "worker", kind), f"  worker: {kind}", ms, costs.total_ms)
    for way, count in (("voluntary", costs.voluntary_switches), ("involuntary", costs.involuntary_switches)):
        report.number(_key(key, way, "switches"), f"  worker: {way} context switches", count, "")


def report_stages(report: Report, key: str, stages: Mapping[str, float], samples: int) -> None:
    """Add the stages of the worker's Python threads."""
    report.fact(_key(key, "samples"), "samples of the worker, by stage", samples)
    whole = sum(stages.values())
    for stage, ms in stages.items():
        report.cost(_key(key, "stage", stage), f"  {stage}", ms, whole)


def _budget(unit: Unit, name: str) -> str:
    budget = BUDGETS[unit].get(name)
    return "" if budget is None else f"<= {budget} ms"


def _key(*names: str) -> str:
    return "_".join("".join(one if one.isalnum() else "_" for one in name.replace("'", "")) for name in names).lower()
