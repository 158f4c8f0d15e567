"""Questions by several callers at once, and their latency."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import quantiles

from modestream_client import MemoryClient

from bench.harness.callers import answer_seconds
from bench.harness.report import Report


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of a round trip, and questions a second."""

    p50_ms: float
    p95_ms: float
    per_second: float


async def ask(client: MemoryClient, user: str, asked: Sequence[str], callers: int) -> Latency:
    """Ask each question once; each caller waits for its answer before it asks the next one."""
    began = time.perf_counter()
    times = await answer_seconds(partial(client.retrieve, users=user, read_after=None), asked, callers)
    seconds = time.perf_counter() - began
    cuts = quantiles(times, n=20, method="inclusive")
    return Latency(1000 * cuts[9], 1000 * cuts[18], len(times) / seconds)


def report_latency(report: Report, key: str, latency: Latency, wanted: str = "") -> None:
    """Add percentiles of the round trip, and questions a second with their target."""
    report.number(f"{key}_p50_ms", "round trip, p50", latency.p50_ms, "ms")
    report.number(f"{key}_p95_ms", "round trip, p95", latency.p95_ms, "ms")
    report.number(f"{key}_per_s", "questions a second", latency.per_second, "1/s", wanted)
