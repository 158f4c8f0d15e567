"""`python -m bench.capacity [--turns 4000] [--filled N]`: what a memory, a turn and a question take.

Writes longer turns of users with 200 memories each to a system in a temporary directory, waits until all are embedded,
and looks at the sizes of each store, at memory and at processor time. Then every user asks a question. With `--filled`
it instead writes N memories into the stores of a stopped worker, looks at their sizes, and times a start with them.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from modestream_client import MemoryClient

from bench.harness.filling import prepare
from bench.harness.processes import cpu_seconds, resident
from bench.harness.report import Report
from bench.harness.system import System, running
from bench.harness.texts import distinct_questions, mixed_turns
from bench.ingest import ingest

USER_MEMORIES = 200
STORES = ("partitions", "vectors")
TURNS_LOG, CHANGELOGS = "memory.turns-", "-changelog-"
POLL_S = 2.0
"""Between two looks at what is embedded: each costs every user's command."""

WARM = 200


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.capacity", description=__doc__)
    parser.add_argument("--turns", type=int, default=4000)
    parser.add_argument("--filled", type=int, help="memories that are written without a model")
    options = parser.parse_args()
    report = Report(print)
    with tempfile.TemporaryDirectory(prefix="modestream-capacity-") as directory:
        if options.filled:
            asyncio.run(_measure_filled(Path(directory), options.filled, report))
        else:
            asyncio.run(_measure(Path(directory), options.turns, report))
    report.print()
    sys.stdout.flush()


async def _measure(directory: Path, turns: int, report: Report) -> None:
    async with running(directory) as system, MemoryClient(system.bootstrap, timeout=60) as client:
        await ingest(system.bootstrap, mixed_turns(WARM, 1), "warm")
        idle, sizes, spent = resident(system), stored(system), cpu_seconds(system)
        texts = mixed_turns(turns, 2)
        users = max(1, turns // USER_MEMORIES)
        rates = await ingest(system.bootstrap, texts, "user", users=users, poll_interval_s=POLL_S)
        report.section(f"{turns:,} turns of {sum(map(len, texts)) / turns:.0f} characters; {users} users")
        report.fact("load", "load average in the end", round(os.getloadavg()[0], 1))
        report.number("embedded", "turns embedded", rates.embedded, "/s")
        _report_each(report, "turn", spent, cpu_seconds(system), turns)
        for name, size in stored(system).items():
            report.number(f"{name}_bytes", f"a memory, {name}", (size - sizes[name]) / turns, "bytes")
        for name, memory in resident(system).items():
            report.number(f"{name}_mib", f"memory of the {name} ({idle[name]['rss']:.0f} before)", memory["rss"], "MiB")
        spent, began = cpu_seconds(system), time.perf_counter()
        asked = distinct_questions(texts, 4 * users, 3)
        for number, question in enumerate(asked):
            await client.retrieve(question, users=f"user-{number % users}", read_after=None)
        report.section(f"{len(asked)} questions, one after another")
        report.number("question_ms", "a question", 1000 * (time.perf_counter() - began) / len(asked), "ms")
        _report_each(report, "question", spent, cpu_seconds(system), len(asked))


async def _measure_filled(directory: Path, memories: int, report: Report) -> None:
    users = [(f"user-{number}", USER_MEMORIES) for number in range(memories // USER_MEMORIES)]
    await prepare(directory, users, lambda _: None)
    report.section(f"{memories:,} memories of {len(users):,} users")
    for store in STORES:
        report.number(f"{store}_bytes", f"a memory, {store}", bytes_of(directory / store) / memories, "bytes")
    async with running(directory) as system:
        report.number("start_s", "a start", system.seconds_to_ready, "s")
        report.number("worker_mib", "memory of the worker", resident(system)["worker"]["rss"], "MiB")


def _report_each(
    report: Report, what: str, before: Mapping[str, float], after: Mapping[str, float], count: int
) -> None:
    for name, seconds in after.items():
        report.number(
            f"{what}_{name}_ms", f"processor for a {what}, {name}", 1000 * (seconds - before[name]) / count, "ms"
        )


def stored(system: System) -> dict[str, int]:
    """Return the bytes on disk by store, those of Kafka by the purpose of the topic."""
    found = {name: bytes_of(system.data_dir / name) for name in STORES}
    logs = {place.name: bytes_of(place) for place in (system.data_dir / "kafka").iterdir() if place.is_dir()}
    found["log of turns"] = sum(size for name, size in logs.items() if name.startswith(TURNS_LOG))
    found["changelogs"] = sum(size for name, size in logs.items() if CHANGELOGS in name)
    found["events, replies"] = sum(logs.values()) - found["log of turns"] - found["changelogs"]
    return found


def bytes_of(directory: Path) -> int:
    """Return the bytes that are allocated: indexes of Kafka are sparse files."""
    sizes = 0
    for path in directory.rglob("*"):
        try:
            sizes += path.stat().st_blocks * 512
        except FileNotFoundError:
            continue
    return sizes


if __name__ == "__main__":
    main()
