"""A run as a waterfall: its steps and the calls of language models, where each began and how long it took. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gateway.pages.bars import WIDTH

MIN_WIDTH = 0.4
"""Units of the shortest bar: a step of microseconds is there, too."""

Json = Mapping[str, Any]


class Row(NamedTuple):
    """A step, or a call of a language model (`model`): its bar from `start` on, and its times in milliseconds."""

    name: str
    at_ms: float
    ms: float
    start: float
    width: float
    model: Json | None = None


class Totals(NamedTuple):
    """What language models cost in a run; `cost_usd` is None if a price is not known, or none answered."""

    calls: int
    tokens_in: int
    tokens_out: int
    cost_usd: float | None


def rows_of(run: Json) -> list[Row]:
    """Return the rows of a run in the order in which they began, a step before the calls in it.

    >>> [(row.start, row.width) for row in rows_of({"ms": 10, "steps": [{"step": "a.b", "at_ms": 5, "ms": 2.5}]})]
    [(50.0, 25.0)]
    """
    whole = max(float(run["ms"]), 0.001)
    steps = [(one["at_ms"], 0, one, None) for one in run.get("steps") or ()]
    calls = [(one["at_ms"], 1, one, one) for one in run.get("models") or ()]
    ordered = sorted([*steps, *calls], key=lambda one: one[:2])
    return [_row(one, model, whole) for _, _, one, model in ordered]


def totals_of(run: Json) -> Totals:
    """Return what the calls of a run cost together."""
    calls = list(run.get("models") or ())
    costs = [one.get("cost_usd") for one in calls if one.get("failure") is None]
    known = [float(cost) for cost in costs if cost is not None]
    tokens_in, tokens_out = (sum(one.get(name) or 0 for one in calls) for name in ("tokens_in", "tokens_out"))
    return Totals(len(calls), tokens_in, tokens_out, sum(known) if known and len(known) == len(costs) else None)


def _row(one: Json, model: Json | None, whole: float) -> Row:
    at_ms, ms = float(one["at_ms"]), float(one["ms"])
    start = min(WIDTH * at_ms / whole, WIDTH - MIN_WIDTH)
    width = min(max(WIDTH * ms / whole, MIN_WIDTH), WIDTH - start)
    return Row(one["step"], at_ms, ms, round(start, 2), round(width, 2), model)
