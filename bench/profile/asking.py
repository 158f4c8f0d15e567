"""Questions by several callers at once, and their latency."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import quantiles

from modestream_client import MemoryClient


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of a round trip, and questions a second."""

    p50_ms: float
    p95_ms: float
    per_second: float


async def ask(client: MemoryClient, user: str, asked: Sequence[str], callers: int) -> Latency:
    """Ask each question once; each caller waits for its answer before it asks the next one."""
    left, times = iter(asked), list[float]()
    began = time.perf_counter()
    await asyncio.gather(*(_ask_in_turn(client, user, left, times) for _ in range(callers)))
    seconds = time.perf_counter() - began
    cuts = quantiles(times, n=20, method="inclusive")
    return Latency(1000 * cuts[9], 1000 * cuts[18], len(times) / seconds)


async def _ask_in_turn(client: MemoryClient, user: str, left: Iterator[str], times: list[float]) -> None:
    for question in left:
        began = time.perf_counter()
        await client.retrieve(question, users=user, read_after=None)
        times.append(time.perf_counter() - began)
