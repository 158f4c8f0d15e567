"""`python -m bench.rebuild [--turns 100000] [--case disk|log]`: how long lost stores take to be made again.

Writes turns to a system in a temporary directory, kills its worker, and has everything made again: `disk` after the
loss of its data directory (tables from their changelogs, words from the tables, vectors by the model), `log` from the
records of `memory.turns` alone, in a deployment without anything. Both are compared with the bare embedder, before and
after, on the same texts.
"""

import argparse
import asyncio
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from bench.faults.cluster import Cluster, new_cluster
from bench.faults.world import Models
from bench.harness.embedder_alone import EmbedderAlone
from bench.harness.processes import stat_cpu_seconds
from bench.harness.report import Report
from bench.harness.texts import mixed_turns, short_turns
from bench.ingest import USERS, ingest
from streams.runtime.fence import SESSION_TIMEOUT_S

PARTITIONS = 4
SAMPLE = 400
"""Texts for the bare embedder, before and after each case."""

POLL_S = 0.25
MAX_S = 6 * 3600.0
AGAIN = "again."
"""The prefix of the deployment that has the turns alone."""

CASES = ("disk", "log")


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Seconds until all words are found again, and until all vectors are; milliseconds of processor time a memory."""

    words_s: float
    vectors_s: float
    words_ms: Mapping[str, float]
    vectors_ms: Mapping[str, float]


class Measured:
    """One filled system whose stores are made again."""

    def __init__(self, cluster: Cluster, texts: Sequence[str], report: Report, users: int) -> None:
        self._cluster, self._texts, self._report = cluster, texts, report
        self._users = users
        self._alone = EmbedderAlone(Models.directory, "int8")

    async def run(self, cases: Sequence[str]) -> None:
        """Fill the system and measure the cases."""
        count, cluster = len(self._texts), self._cluster
        _progress(f"{count:,} turns")
        rates = await ingest(cluster.bootstrap, self._texts, "user", users=self._users, poll_interval_s=2.0)
        self._memories = await cluster.embedded("worker")
        self._report.section(f"{count:,} turns of {sum(map(len, self._texts)) / count:.0f} characters")
        self._report.number("fresh_per_s", "embedded at first", rates.embedded, "turns/s")
        self._report.fact("memories", "memories with a vector", self._memories)
        await cluster.workers["worker"].hold()
        # Not a part of the rebuild: Kafka waits so long for the worker that is gone.
        await asyncio.sleep(SESSION_TIMEOUT_S + 1)
        for case in cases:
            _progress(case)
            await self._measure(case, self._lose_disk if case == "disk" else self._replay_log)

    async def _measure(self, case: str, begin: Callable[[], Awaitable[str]]) -> None:
        sample = self._texts[:: max(1, len(self._texts) // SAMPLE)]
        before = self._alone.texts_per_second(sample)
        self._began = time.perf_counter()
        rebuilt = await self._rebuilt(name := await begin())
        await self._cluster.workers[name].hold()
        alone = mean((before, self._alone.texts_per_second(sample)))
        self._add(case, rebuilt, alone)

    async def _lose_disk(self) -> str:
        shutil.rmtree(self._cluster.directory / "worker")
        await self._cluster.start_worker()
        return "worker"

    async def _replay_log(self) -> str:
        await self._cluster.start_worker("again", more={"MODESTREAM_TOPIC_PREFIX": AGAIN})
        await self._cluster.until_served(again=PARTITIONS)
        # Its start is no part of the rebuild.
        self._began = time.perf_counter()
        await copy_turns(self._cluster.bootstrap, "memory.turns", f"{AGAIN}turns")
        return "again"

    async def _rebuilt(self, name: str) -> Rebuild:
        async with asyncio.timeout(MAX_S):
            await self._cluster.until_served(**{name: PARTITIONS})
            words_s, words = time.perf_counter() - self._began, self._cpu_seconds(name)
            while await self._cluster.embedded(name) < self._memories:  # noqa: ASYNC110 - it is polled
                await asyncio.sleep(POLL_S)
            vectors_s, vectors = time.perf_counter() - self._began, self._cpu_seconds(name)
        return Rebuild(words_s, vectors_s, self._each(words), self._each(vectors, words))

    def _each(self, seconds: Mapping[str, float], before: Mapping[str, float] | None = None) -> dict[str, float]:
        since = before or {}
        return {one: 1000 * (value - since.get(one, 0.0)) / self._memories for one, value in seconds.items()}

    def _cpu_seconds(self, name: str) -> dict[str, float]:
        """Return the processor time of the worker, of its children, and of the broker."""
        worker = self._cluster.pid(name)
        children = Path(f"/proc/{worker}/task/{worker}/children").read_text().split()
        [broker] = self._cluster.brokers.nodes
        assert broker.process is not None
        pids: dict[str, Sequence[object]] = {"worker": (worker,), "embedder": children, "broker": (broker.process.pid,)}
        return {
            one: sum(stat_cpu_seconds(Path(f"/proc/{pid}/stat")) for pid in several) for one, several in pids.items()
        }

    def _add(self, case: str, found: Rebuild, alone: float) -> None:
        report = self._report
        report.section(f"{case} lost" if case == "disk" else "from the log of turns alone")
        report.fact(f"{case}_load", "load average in the end", round(os.getloadavg()[0], 1))
        report.number(f"{case}_words_s", "until all partitions answer", found.words_s, "s")
        report.number(f"{case}_vectors_s", "until all vectors are there", found.vectors_s, "s")
        per_s = self._memories / (found.vectors_s - (found.words_s if case == "disk" else 0.0))
        report.number(f"{case}_per_s", "vectors", per_s, "/s")
        report.number(f"{case}_alone_per_s", "fastembed alone, int8, 1 thread", alone, "texts/s")
        report.ratio(f"{case}_ratio", "vectors / alone", per_s / alone, ">= 0.9")
        for phase, costs in (("before it answers", found.words_ms), ("after that", found.vectors_ms)):
            for process, ms in costs.items():
                key = f"{case}_{process}_{phase.split()[0]}_ms"
                report.number(key, f"processor of the {process} a memory, {phase}", ms, "ms")


async def copy_turns(bootstrap: str, source: str, target: str) -> None:
    """Copy all records of a topic to another one with as many partitions, with keys, values and timestamps."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=5)
    async with consumer, producer:
        places = [TopicPartition(source, number) for number in range(PARTITIONS)]
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        while any([await consumer.position(place) < end for place, end in ends.items()]):
            for place, records in (await consumer.getmany(timeout_ms=1000)).items():
                for one in records:
                    await producer.send(
                        target, one.value, one.key, place.partition, timestamp_ms=one.timestamp, headers=one.headers
                    )
        await producer.flush()


def _progress(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.rebuild", description=__doc__)
    parser.add_argument("--turns", type=int, default=3000)
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--short", action="store_true", help="turns of 8 to 12 words instead of 5 to 100")
    parser.add_argument("--case", choices=CASES, action="append", help="one case; may be repeated")
    options = parser.parse_args()
    # Ended like Ctrl-C: the system is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    texts = (short_turns if options.short else mixed_turns)(options.turns, 2)
    report = Report(print)
    with tempfile.TemporaryDirectory(prefix="modestream-models-") as models:
        Models.directory = Path(models)
        asyncio.run(_run(texts, options.users, options.case or CASES, report))
    report.print()
    sys.stdout.flush()


async def _run(texts: Sequence[str], users: int, cases: Sequence[str], report: Report) -> None:
    async with new_cluster(kind=Cluster) as cluster:
        await Measured(cluster, texts, report, users).run(cases)


if __name__ == "__main__":
    main()
