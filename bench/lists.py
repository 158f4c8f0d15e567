"""A page and a map over REST, and pages of the window, for a user with many memories; what they cost the gateway.

The memories are written by `bench.harness.filling`: their vectors are random, which is the longest layout there is.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from bench.harness.filling import prepare
from bench.harness.processes import resident_mib
from bench.harness.report import Report
from bench.harness.system import System, running

USER = "largest"

ROUNDS = 20
"""Pages, and maps, of which the median is taken."""

PAGE: Mapping[str, int] = {"limit": 50}
MAP: Mapping[str, int] = {"limit": 10_000}

LOOK_S = 0.5
"""The pause between two looks at whether the map is settled."""

MAX_SETTLING_S = 300.0


async def measure_lists(data_dir: Path, report: Report, memories: int, progress: Callable[[str], None]) -> None:
    """Fill an empty directory with the memories of one user, and read them."""
    progress(f"filling in {memories:,} memories of one user")
    await prepare(data_dir, [(USER, memories)], lambda _: None)
    progress("pages and maps")
    async with running(data_dir) as system, httpx.AsyncClient(base_url=system.url, timeout=60) as http:
        report.section(f"pages and maps over REST, a user of {memories:,} memories")
        await _measure(Lists(http), system, report)


class Lists:
    """What a user reads without a question."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def timed(self, path: str, query: Mapping[str, Any]) -> tuple[float, httpx.Response]:
        """Return the milliseconds of an answer, and the answer."""
        began = time.perf_counter()
        answer = await self._http.get(f"/v1/users/{USER}{path}", params=query, headers={"Prefer": "wait=60"})
        return 1000 * (time.perf_counter() - began), answer.raise_for_status()

    async def median_ms(self, path: str, query: Mapping[str, Any]) -> float:
        """Return the median milliseconds of some answers."""
        return median([(await self.timed(path, query))[0] for _ in range(ROUNDS)])

    async def window_ms(self, page: str) -> tuple[float, float]:
        """Return the milliseconds of the first answer of a page of the window, and the median of more of them."""
        taken = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            (await self._http.get(f"/admin{page}", params={"user": USER})).raise_for_status()
            taken.append(1000 * (time.perf_counter() - began))
        return taken[0], median(taken)

    async def settled_s(self) -> float:
        """Wait until the map is laid out; return the seconds that it took."""
        began = time.perf_counter()
        async with asyncio.timeout(MAX_SETTLING_S):
            while not all(cloud["settled"] for cloud in (await self._clouds())):  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(LOOK_S)
        return time.perf_counter() - began

    async def _clouds(self) -> list[Any]:
        clouds: list[Any] = (await self.timed("/map", {"limit": 1}))[1].json()["clouds"]
        return clouds


async def _measure(lists: Lists, system: System, report: Report) -> None:
    gateway = system.pid("gateway")
    idle = resident_mib(gateway)
    first_page, _ = await lists.timed("/memories", PAGE)
    report.number("first_page_ms", "the first page of 50 after a start", first_page, "ms")
    report.number("page_ms", "a page of 50, p50", await lists.median_ms("/memories", PAGE), "ms")
    for page, name in (("", "overview"), ("/memories", "memories"), ("/conversations", "conversations")):
        first, usual = await lists.window_ms(page)
        report.number(f"window_first_{name}_ms", f"the window's page {name}, the first time", first, "ms")
        report.number(f"window_{name}_ms", f"the window's page {name}, p50", usual, "ms")
    first_map, drawn = await lists.timed("/map", MAP)
    report.number("first_map_ms", "the first map of 10,000", first_map, "ms")
    report.number("map_settled_s", "until the map is laid out", await lists.settled_s(), "s")
    report.number("map_ms", "a map of 10,000, p50", await lists.median_ms("/map", MAP), "ms")
    report.number("map_mb", "its size", len(drawn.content) / 1e6, "MB")
    report.number("lists_gateway_idle_mib", "resident memory of the gateway before", idle, "MiB")
    report.number("lists_gateway_mib", "resident memory of the gateway after", resident_mib(gateway), "MiB")
