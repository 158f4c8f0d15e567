"""What the doors cost: the same question and turn by client, over REST and over MCP; callers at once; memory.

The three ways take turns, question by question, so that a busy machine slows all of them alike: only ratios count.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import median

import httpx
from modestream_client import MemoryClient

from bench.harness.processes import resident_mib
from bench.harness.report import Report
from bench.harness.system import System

WARM = 20
"""First rounds, not counted."""

CALLERS = (1, 8, 32)

RATE_S = 5.0
"""Seconds for which requests per second are counted."""

MCP_HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}

Way = Callable[[str], Awaitable[object]]
"""Sends one text."""


@dataclass(frozen=True)
class Doors:
    """One user's ways in."""

    client: MemoryClient
    http: httpx.AsyncClient
    user: str

    async def ask_client(self, text: str) -> object:
        """Search over Kafka."""
        return await self.client.retrieve(text, users=self.user, read_after=None)

    async def ask_rest(self, text: str) -> object:
        """Search over REST."""
        return await self._post("/memories/search", {"query": text})

    async def ask_mcp(self, text: str) -> object:
        """Search over MCP."""
        return await self._call("search_memory", {"query": text})

    async def tell_client(self, text: str) -> object:
        """Store a turn over Kafka."""
        return await self.client.remember(text + " by client", user_id=f"{self.user}-writes")

    async def tell_rest(self, text: str) -> object:
        """Store a turn over REST."""
        turn = {"conversation_id": "bench", "role": "user", "content": text + " by REST"}
        return await self._post("/turns", turn, "-writes")

    async def tell_mcp(self, text: str) -> object:
        """Store a turn over MCP."""
        return await self._call("add_memory", {"text": text + " by MCP"}, "-writes")

    async def _post(self, path: str, body: object, suffix: str = "") -> object:
        return (await self.http.post(f"/v1/users/{self.user}{suffix}{path}", json=body)).raise_for_status()

    async def _call(self, tool: str, arguments: object, suffix: str = "") -> object:
        params = {"name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = await self.http.post(f"/mcp/users/{self.user}{suffix}", json=message, headers=MCP_HEADERS)
        if answer.raise_for_status().json()["result"]["isError"]:
            raise RuntimeError(answer.text)
        return answer


async def measure_gateway(system: System, report: Report, user: str, asked: Sequence[str]) -> None:
    """Ask the memories of `user`, and write turns of another user."""
    async with (
        MemoryClient(system.bootstrap, timeout=60) as client,
        httpx.AsyncClient(base_url=system.url, timeout=60) as http,
    ):
        doors = Doors(client, http, user)
        report.section("the gateway, one caller, p50")
        await _report_ratios(report, "search", asked, (doors.ask_client, doors.ask_rest, doors.ask_mcp))
        await _report_ratios(report, "turn", asked, (doors.tell_client, doors.tell_rest, doors.tell_mcp))
        report.section("searches a second over REST")
        for callers in CALLERS:
            rate = await _rate(doors.ask_rest, asked, callers)
            report.number(f"gateway_{callers}_callers_per_s", f"{callers} callers", rate, "1/s")
        report.number("gateway_rss_mib", "resident memory of the gateway", resident_mib(system.pid("gateway")), "MiB")


async def _report_ratios(report: Report, key: str, asked: Sequence[str], ways: Sequence[Way]) -> None:
    await _medians(asked[:WARM], ways)
    client, rest, mcp = await _medians(asked, ways)
    report.number(f"gateway_{key}_client_ms", f"a {key} by client", 1000 * client, "ms")
    report.ratio(f"gateway_{key}_rest", f"a {key}, REST / client", rest / client, "<= 1.25")
    report.ratio(f"gateway_{key}_mcp", f"a {key}, MCP / client", mcp / client, "<= 1.45")


async def _medians(asked: Sequence[str], ways: Sequence[Way]) -> list[float]:
    """Return the median seconds of each way."""
    times: list[list[float]] = [[] for _ in ways]
    for text in asked:
        for way, own in zip(ways, times, strict=True):
            began = time.perf_counter()
            await way(text)
            own.append(time.perf_counter() - began)
    return [median(own) for own in times]


async def _rate(way: Way, asked: Sequence[str], callers: int) -> float:
    """Return requests per second of callers that each wait for their answer."""
    ends = time.perf_counter() + RATE_S

    async def call(number: int) -> int:
        count = 0
        while time.perf_counter() < ends:
            await way(asked[(number + count) % len(asked)])
            count += 1
        return count

    return sum(await asyncio.gather(*(call(number) for number in range(callers)))) / RATE_S
