"""Latency of a question by the number of other users' memories: `python -m bench.scale [--memories 1000000]`.

Runs two systems after each other, with 10,000 memories and with `--memories`: users of 200, and in the larger one also
a user of 50,000. The same user asks the same questions over Kafka in both; so do other users of 200, once each, with
memories that were not read since the start.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from modestream_client import MemoryClient

from bench.harness.filling import prepare
from bench.harness.processes import resident
from bench.harness.report import Report
from bench.harness.system import System, running
from bench.harness.texts import mixed_turns, questions
from bench.retrieval import WARM

SMALL, LARGE = 200, 50_000
"""Memories of most users, and of the largest."""

FEW = 10_000
"""Memories of the smaller store."""

QUESTIONS = 300
"""Questions per measurement."""


@dataclass(frozen=True, slots=True)
class Times:
    """Medians in milliseconds: one user of 200 repeatedly, users for the first time, the largest user.

    `worker_mib` is the worker's resident memory at the end.
    """

    same_user: float
    other_users: float
    largest_user: float | None
    worker_mib: float


async def measure(memories: int, directory: Path) -> Times:
    """Fill a store and time the questions."""
    large = LARGE if memories > 2 * LARGE else 0
    users = [(f"user-{number}", SMALL) for number in range((memories - large) // SMALL)]
    began = time.perf_counter()
    await prepare(directory, [*users, *([("largest", large)] if large else [])], _Progress(memories))
    _print_line(f"{memories:,} memories in {time.perf_counter() - began:.0f} s")
    async with running(directory) as system:
        _print_line(f"ready after {system.seconds_to_ready:.1f} s")
        return await _time_questions(system, [user for user, _ in users], large=bool(large))


async def _time_questions(system: System, users: Sequence[str], *, large: bool) -> Times:
    asked = questions(mixed_turns(1000, 11), QUESTIONS, 5)
    # A prime stride: no particular order, each user at most once.
    others = [users[1 + number * 7919 % (len(users) - 1)] for number in range(min(QUESTIONS, len(users) - 1))]
    async with MemoryClient(system.bootstrap, timeout=60) as client:
        await _median_ms(client, ["user-0"] * WARM, asked[:WARM])
        return Times(
            same_user=await _median_ms(client, ["user-0"] * QUESTIONS, asked),
            other_users=await _median_ms(client, others, asked[: len(others)]),
            largest_user=await _median_ms(client, ["largest"] * QUESTIONS, asked) if large else None,
            worker_mib=resident(system)["worker"]["rss"],
        )


async def _median_ms(client: MemoryClient, users: Sequence[str], asked: Sequence[str]) -> float:
    times = []
    for user, question in zip(users, asked, strict=True):
        began = time.perf_counter()
        answer = await client.retrieve(question, users=user, read_after=None)
        times.append(time.perf_counter() - began)
        if len(answer.hits) != 10 or answer.warnings:
            raise RuntimeError(f"{user} got {len(answer.hits)} hits and {answer.warnings}")
    return 1000 * median(times)


class _Progress:
    """Prints a line at every tenth."""

    def __init__(self, whole: int) -> None:
        self._whole = whole
        self._tenth = 0

    def __call__(self, written: int) -> None:
        if 10 * written // self._whole > self._tenth:
            self._tenth = 10 * written // self._whole
            _print_line(f"{written:,} of {self._whole:,} memories")


def _print_line(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")


def main() -> None:
    """Measure both stores and print the ratios."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--memories", type=int, default=1_000_000, help="in the larger store (%(default)s)")
    options = parser.parse_args()
    report = Report(print)
    with tempfile.TemporaryDirectory(prefix="modestream-scale-") as directory:
        few = asyncio.run(measure(FEW, Path(directory) / "few"))
        many = asyncio.run(measure(options.memories, Path(directory) / "many"))
    report.section(f"a question over Kafka, {FEW:,} and {options.memories:,} memories in the store")
    report.number("few_same_ms", "few, one user of 200", few.same_user, "ms")
    report.number("many_same_ms", "many, one user of 200", many.same_user, "ms")
    report.ratio("same_user", "many / few", many.same_user / few.same_user, "<= 1.5")
    report.number("few_others_ms", "few, users of 200 asked for the first time", few.other_users, "ms")
    report.number("many_others_ms", "many, users of 200 asked for the first time", many.other_users, "ms")
    report.ratio("other_users", "many / few", many.other_users / few.other_users, "<= 1.5")
    if many.largest_user is not None:
        report.number("largest_ms", "many, the user of 50,000", many.largest_user, "ms")
        report.ratio("largest_user", "the user of 50,000 / one of 200, few", many.largest_user / few.same_user)
    report.number("worker_mib", "the worker's memory, many", many.worker_mib, "MiB")
    report.print()
    sys.stdout.write(json.dumps({"few": asdict(few), "many": asdict(many)}) + "\n")


if __name__ == "__main__":
    main()
