"""`python -m bench.floods [--scale 0.1] [--only NAME]`: print what each flood of one user costs another user.

`bob` asks questions, writes turns and sends commands at a steady rate, in the flooded partition and in another one,
before and during each flood. The rows are p50 and p95 in milliseconds and their ratios within one run, and p95 of what
is sent in the first `BEGINNING_S` of the flood. A request without an answer within `MAX_WAIT_S` counts as that long.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from modestream_client import MemoryClient

from bench.harness.flood_loads import FLOODER, FLOODS, Flood
from bench.harness.system import running
from streams.settings import Settings
from streams.wire.partitioning import partition_of

MAX_WAIT_S = 60.0
"""The longest wait for one answer."""

INTERVAL_S = 0.25
"""Between two probes of one kind: six kinds are 24 requests a second, far from saturation."""

PROBE_S = 10.0
"""How long the probes run before a flood, and during it."""

BEGINNING_S = 2.0
"""How much of a flood is its beginning: eight probes of a kind, so their p95 is the slowest."""

PERCENTILES = (0.5, 0.95)

Latencies = Mapping[str, list[float]]
"""Milliseconds by the name of a probe, in the order in which the probes were sent."""


async def probe(client: MemoryClient, users: Mapping[str, str], seconds: float) -> Latencies:
    """Send probes of every kind for each user, whatever their answers take; return when all are answered."""
    sent: dict[str, list[asyncio.Task[float]]] = defaultdict(list)
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(round(seconds / INTERVAL_S)):
            await asyncio.sleep(max(0.0, began + number * INTERVAL_S - time.perf_counter()))
            for place, user in users.items():
                for kind, request in _requests(client, user).items():
                    sent[f"{kind}, {place}"].append(group.create_task(_timed_ms(request)))
    return {name: [task.result() for task in tasks] for name, tasks in sent.items()}


def _requests(client: MemoryClient, user: str) -> dict[str, Callable[[], Awaitable[object]]]:
    return {
        "question": lambda: client.retrieve("where is the lantern?", users=user, read_after=None),
        "turn": lambda: client.remember("The lantern is on the shelf.", user_id=user),
        "command": lambda: client.command("health", user_id=user),
    }


async def _timed_ms(request: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    try:
        await request()
    except TimeoutError:
        return MAX_WAIT_S * 1000
    return (time.perf_counter() - began) * 1000


def percentile(values: list[float], share: float) -> float:
    """Return the value that this share of the values does not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def rows(flood: str, before: Latencies, during: Latencies) -> list[str]:
    """Return a row of Markdown for each kind of probe."""
    found = []
    for kind, first in before.items():
        cells = [flood, kind]
        for share in PERCENTILES:
            old, new = percentile(first, share), percentile(during[kind], share)
            cells += [f"{old:.0f}", f"{new:.0f}", f"{new / old:.1f}"]
        beginning = during[kind][: round(BEGINNING_S / INTERVAL_S)]
        cells.append(f"{percentile(beginning, PERCENTILES[-1]):.0f}")
        found.append(f"| {' | '.join(cells)} |")
    return found


def neighbours(partitions: int) -> dict[str, str]:
    """Return a user in the FLOODER's partition and one in another."""
    flooded = partition_of(FLOODER.encode(), partitions)
    names = [f"bob-{number}" for number in range(1000)]
    same = next(name for name in names if partition_of(name.encode(), partitions) == flooded)
    other = next(name for name in names if partition_of(name.encode(), partitions) != flooded)
    return {"same partition": same, "other partition": other}


async def measure(name: str, flood: Flood, scale: float) -> list[str]:
    """Measure one flood in a new system."""
    with tempfile.TemporaryDirectory(prefix="modestream-floods-") as directory:
        async with running(Path(directory)) as system, MemoryClient(system.bootstrap, timeout=MAX_WAIT_S) as client:
            users = neighbours(Settings().partitions)
            await flood.prepare(client, scale)
            await probe(client, users, 3.0)
            before = await probe(client, users, PROBE_S)
            flooding = asyncio.create_task(flood.start(system.bootstrap, scale))
            during = await probe(client, users, PROBE_S)
            flooding.cancel()
            await asyncio.wait([flooding])
            if not flooding.cancelled():
                flooding.result()
            return rows(name, before, during)


async def _print_all(names: list[str], scale: float) -> None:
    header = "| flood | bob's | p50 before | during | ratio | p95 before | during | ratio | p95 at first |"
    print(header + "\n" + "|" + " --- |" * (header.count("|") - 1))
    for name in names:
        print(*await measure(name, FLOODS[name], scale), sep="\n", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.floods", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of each flood's size (%(default)s)")
    parser.add_argument("--only", choices=list(FLOODS), action="append", help="this flood; may be repeated")
    options = parser.parse_args()
    asyncio.run(_print_all(options.only or list(FLOODS), options.scale))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
