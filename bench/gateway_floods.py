"""`python -m bench.gateway_floods [--seconds 10] [--only NAME]`: print what a flood of the gateway costs others.

`bob` asks questions, writes turns, shows a memory and asks `/live` at a steady rate, with a key and an address of its
own, before and during each flood, in one run of the system for each. The flooder is another process at another address;
some floods have a key, which is bound to another user. The rows are p50 and p95 in milliseconds, their ratios, what was
not answered with 2xx, and the gateway's memory. A request without an answer within `MAX_WAIT_S` counts as that long.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bench.floods import INTERVAL_S, MAX_WAIT_S, percentile
from bench.harness.gateway_flood_loads import FLOODER, GATEWAY_FLOODS
from bench.harness.processes import resident_mib
from bench.harness.system import running
from gateway.keys.key_file import Key, KeyFile, digest_of, new_key

BOB, BOB_ADDRESS = "bob", "127.0.0.2"
"""The other caller; on Linux all of 127.0.0.0/8 is loopback."""

PERCENTILES = (0.5, 0.95)


@dataclass
class Probed:
    """Milliseconds by the name of a probe, and how many answers were none, or errors."""

    ms: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failed: dict[str, int] = field(default_factory=lambda: defaultdict(int))


async def probe(http: httpx.AsyncClient, memory_id: str, seconds: float) -> Probed:
    """Send probes of every kind, whatever their answers take; return when all are answered."""
    probed = Probed()
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(round(seconds / INTERVAL_S)):
            await asyncio.sleep(max(0.0, began + number * INTERVAL_S - time.perf_counter()))
            for kind, request in _requests(http, memory_id, number).items():
                group.create_task(_timed(probed, kind, request))
    return probed


def _requests(
    http: httpx.AsyncClient, memory_id: str, number: int
) -> Mapping[str, Callable[[], Awaitable[httpx.Response]]]:
    user = f"/v1/users/{BOB}"
    turn = {"conversation_id": "c1", "role": "user", "content": f"The lantern is on shelf {number}."}
    return {
        "live": lambda: http.get("/live"),
        "question": lambda: http.post(f"{user}/memories/search", json={"query": "where is the lantern?"}),
        "turn": lambda: http.post(f"{user}/turns", json=turn),
        "memory": lambda: http.get(f"{user}/memories/{memory_id}"),
    }


async def _timed(probed: Probed, kind: str, request: Callable[[], Awaitable[httpx.Response]]) -> None:
    began = time.perf_counter()
    try:
        answer = await request()
        probed.failed[kind] += not answer.is_success
        probed.ms[kind].append((time.perf_counter() - began) * 1000)
    except httpx.HTTPError:
        probed.failed[kind] += 1
        probed.ms[kind].append(MAX_WAIT_S * 1000)


async def measure(name: str, seconds: float) -> list[str]:
    """Measure one flood in a new system; return rows of Markdown."""
    with tempfile.TemporaryDirectory(prefix="modestream-floods-") as directory:
        keys = {user: new_key() for user in (BOB, FLOODER)}
        KeyFile(
            keys=tuple(Key(id=user, sha256=digest_of(key), principal=user, user_id=user) for user, key in keys.items())
        ).write(Path(directory) / "keys.json")
        settings = {"MODESTREAM_GATEWAY_KEYS": str(Path(directory) / "keys.json")}
        async with running(Path(directory) / "data", settings) as system, _bob(system.url, keys[BOB]) as http:
            first = {"conversation_id": "c0", "role": "user", "content": "A lantern."}
            memory_id = (await http.post(f"/v1/users/{BOB}/turns", json=first)).json()["memory_id"]
            await probe(http, memory_id, 3.0)
            gateway = system.pid("gateway")
            before, idle_mib = await probe(http, memory_id, seconds), resident_mib(gateway)
            # A process of its own: its work is no part of what the probes take.
            command = ("-m", "bench.harness.gateway_flood_loads", name, system.url, keys[FLOODER])
            flooding = await asyncio.create_subprocess_exec(sys.executable, *command)
            try:
                during = await probe(http, memory_id, seconds)
                lives = system.pid("gateway") == gateway and flooding.returncode is None
                mib = f"{idle_mib:.0f} → {resident_mib(gateway):.0f}" if lives else "ended"
            finally:
                flooding.kill()
                await flooding.wait()
        return rows(name, before, during, mib)


def _bob(url: str, key: str) -> httpx.AsyncClient:
    transport = httpx.AsyncHTTPTransport(local_address=BOB_ADDRESS)
    return httpx.AsyncClient(base_url=url, timeout=MAX_WAIT_S, headers={"X-API-Key": key}, transport=transport)


def rows(flood: str, before: Probed, during: Probed, mib: str) -> list[str]:
    """Return a row of Markdown for each kind of probe."""
    found = []
    for kind, first in before.ms.items():
        cells = [flood, kind]
        for share in PERCENTILES:
            old, new = percentile(first, share), percentile(during.ms[kind], share)
            cells += [f"{old:.0f}", f"{new:.0f}", f"{new / old:.1f}"]
        found.append(f"| {' | '.join([*cells, str(during.failed[kind]), mib])} |")
    return found


async def _print_all(names: list[str], seconds: float) -> None:
    header = "| flood | bob's | p50 before | during | ratio | p95 before | during | ratio | failed | gateway MiB |"
    print(header + "\n" + "|" + " --- |" * (header.count("|") - 1))
    for name in names:
        print(*await measure(name, seconds), sep="\n", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.gateway_floods", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="of probes before and during (%(default)s)")
    parser.add_argument("--only", choices=list(GATEWAY_FLOODS), action="append", help="this flood; may be repeated")
    options = parser.parse_args()
    asyncio.run(_print_all(options.only or list(GATEWAY_FLOODS), options.seconds))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
