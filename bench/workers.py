"""`python -m bench.workers [--turns 2000] [--workers 1 2 4]`: several workers of one data directory.

For each number of workers, on four partitions: turns and questions a second. With more than one, a question to each
partition at all times tells how long it is without an answer: in a rolling restart under turns, and after `kill -9` of
one worker. At the end every turn is counted.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from statistics import median

from modestream_client import MemoryClient

from bench.harness.callers import answer_seconds
from bench.harness.report import Report
from bench.harness.system import ROOT, System, running
from bench.harness.texts import questions, short_turns
from bench.ingest import ingest
from streams.settings import Settings
from streams.up.child import read_pid
from streams.up.layout import Layout
from streams.wire.partitioning import partition_of

USERS = 32
CALLERS = 8
QUESTIONS = 400
PATIENCE_S = 120.0
"""How long a caller waits for an answer while a partition moves."""

PAUSE_S = 0.05
"""Between two questions to a partition."""

SETTLED_S = 20.0
"""A killed worker is started again and takes its partitions back within this."""


class Watch:
    """Asks one user of each partition all the time."""

    def __init__(self, client: MemoryClient) -> None:
        self._client = client
        self.longest_s: dict[int, float] = {}

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Ask until the block ends; the waits are those of this block."""
        self.longest_s = {}
        tasks = [asyncio.create_task(self._ask(user, number)) for number, user in enumerate(user_of_each_partition())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, user: str, partition: int) -> None:
        while True:
            began = time.monotonic()
            try:
                await self._client.retrieve("the garden", users=user, top_k=3, timeout=PATIENCE_S)
            finally:
                # Also of a question without an answer in the end.
                self.longest_s[partition] = max(self.longest_s.get(partition, 0.0), time.monotonic() - began)
            await asyncio.sleep(PAUSE_S)


def user_of_each_partition() -> list[str]:
    """Return a user of each partition, in the order of their numbers."""
    found: dict[int, str] = {}
    partitions = Settings().partitions
    for number in count():
        user = f"watched-{number}"
        found.setdefault(partition_of(user.encode(), partitions), user)
        if len(found) == partitions:
            return [found[one] for one in sorted(found)]
    raise AssertionError


async def measure(system: System, workers: int, turns: Sequence[str], report: Report) -> None:
    """Measure one running system."""
    report.section(f"{workers} workers")
    rates = await ingest(system.bootstrap, turns, "user", users=USERS)
    report.number(f"embedded_{workers}", "short turns embedded", rates.embedded, "/s")
    async with MemoryClient(system.bootstrap, timeout=60) as client:
        took = await ask(client, questions(list(turns), QUESTIONS, 3))
        report.number(f"questions_{workers}", f"questions of {CALLERS} callers", QUESTIONS / sum(took) * CALLERS, "/s")
        report.number(f"p50_{workers}", "their p50", 1000 * median(took), "ms")
        if workers > 1:
            await disturb(client, system, workers, turns, report)


async def ask(client: MemoryClient, texts: Sequence[str]) -> list[float]:
    """Ask everything, users in turn, by several callers; return the seconds of each answer."""

    async def retrieve(asked: tuple[int, str]) -> object:
        number, text = asked
        return await client.retrieve(text, users=f"user-{number % USERS}", top_k=5)

    return await answer_seconds(retrieve, enumerate(texts), CALLERS)


async def disturb(client: MemoryClient, system: System, workers: int, turns: Sequence[str], report: Report) -> None:
    """Restart the workers in turn, then kill one; report the longest waits and what is there in the end."""
    watch = Watch(client)
    async with watch.watching():
        stored = asyncio.create_task(ingest(system.bootstrap, turns[: len(turns) // 4], "more", users=USERS))
        restart = (sys.executable, "-m", "streams", "restart", "--data-dir", str(system.data_dir))
        began = time.monotonic()
        code = await asyncio.to_thread(subprocess.call, restart, cwd=ROOT, stdout=subprocess.DEVNULL)
        report.fact(f"restart_code_{workers}", "exit code of the rolling restart", code)
        report.number(f"restart_{workers}", "rolling restart of all", time.monotonic() - began, "s")
        await stored
    report.number(f"away_{workers}", "longest wait for a partition in it", max(watch.longest_s.values()), "s")
    async with watch.watching():
        pid = read_pid(Layout(system.data_dir).pid_file(f"worker-{workers}"))
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(SETTLED_S)
    report.number(f"killed_{workers}", "longest wait after kill -9 of a worker", max(watch.longest_s.values()), "s")
    missing = sum([await lacking(client, "user", turns), await lacking(client, "more", turns[: len(turns) // 4])])
    report.fact(f"missing_{workers}", "turns lost or doubled", missing)


async def lacking(client: MemoryClient, label: str, turns: Sequence[str]) -> int:
    """Return by how much the memories of the users differ from their turns."""
    wrong = 0
    for number in range(USERS):
        page = await client.list_memories(
            limit=1, user_id=f"{label}-{number}", types=["episodic"], include_superseded=True, timeout=PATIENCE_S
        )
        wrong += abs(page.total - len(turns[number::USERS]))
    return wrong


async def run(turns: Sequence[str], workers: Sequence[int], report: Report) -> None:
    """Measure each number of workers in a new data directory, with the models exported once."""
    with tempfile.TemporaryDirectory(prefix="modestream-workers-") as directory:
        for number in workers:
            settings = {"MODESTREAM_MODEL_DIR": f"{directory}/models"}
            async with running(Path(directory) / str(number), settings, workers=number) as system:
                await measure(system, number, turns, report)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.workers", description=__doc__)
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    options = parser.parse_args()
    report = Report(print)
    asyncio.run(run(short_turns(options.turns, 2), options.workers, report))
    report.print()


if __name__ == "__main__":
    main()
