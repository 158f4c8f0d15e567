"""`python -m bench.lost_machine [--memories 20000] [--copies 1]`: what a worker costs that is lost with its disk.

Writes memories to the changelogs of a deployment, starts two workers on them, and kills one for good: seconds until its
partitions answer by words, with and without copies on the other one. Then a third worker comes with an empty disk.
Users go on asking and turns go on coming meanwhile; at the end everything is counted.
"""

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from modestream_client import MemoryClient, MemoryServiceError

from bench.faults.cluster import Cluster, new_cluster
from bench.faults.world import Models
from bench.harness.filling import PARTITIONS, synthetic_memories
from bench.harness.processes import stat_cpu_seconds
from bench.harness.report import Report
from bench.harness.texts import short_turns
from streams.runtime.fence import SESSION_TIMEOUT_S
from streams.settings import Settings
from streams.topics import group_id
from streams.wire.partitioning import partition_of

USER_MEMORIES = 200
ASK_S = 1.0
"""How long one question may take before it is asked again."""

ASK_EVERY_S = 0.2
TURNS_PER_S = 5
MAX_TURNS = 20_000
LIVE_USERS = 8
POLL_S = 0.2
COMMITTED_S = 3.0
COMPLETE_LAG = 20
MAX_S = 3600.0


class ToldReport(Report):
    """Tells each row at once, too: a run takes minutes, and may be ended."""

    def number(self, key: str, name: str, value: float, unit: str, wanted: str = "") -> None:
        """Add a number."""
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {key}: {value:.1f} {unit}\n")
        super().number(key, name, value, unit, wanted)

    def fact(self, key: str, name: str, value: object) -> None:
        """Add any other value."""
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {key}: {value}\n")
        super().fact(key, name, value)


class Asked:
    """Asks a user of each partition, again and again, and notes the longest time without an answer."""

    def __init__(self, client: MemoryClient, users: Sequence[str]) -> None:
        self._client = client
        self.users = users
        self.longest_s = dict.fromkeys(users, 0.0)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to ask."""
        self._tasks = [asyncio.create_task(self._ask(user)) for user in self.users]

    async def stop(self) -> None:
        """End when each has had an answer once more."""
        for user in self.users:
            await self._answered(user)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def take(self) -> float:
        """Return the longest wait since the last call, in seconds."""
        longest, self.longest_s = max(self.longest_s.values()), dict.fromkeys(self.users, 0.0)
        return longest

    async def _ask(self, user: str) -> None:
        while True:
            began = time.perf_counter()
            await self._answered(user)
            self.longest_s[user] = max(self.longest_s[user], time.perf_counter() - began)
            await asyncio.sleep(ASK_EVERY_S)

    async def _answered(self, user: str) -> None:
        while True:
            with suppress(MemoryServiceError, TimeoutError, KafkaError):
                if (await self._client.retrieve("which water?", users=user, read_after=None, timeout=ASK_S)).hits:
                    return


class Turns:
    """Turns of users of all partitions that keep coming, and how many of them are there at the end."""

    def __init__(self, client: MemoryClient) -> None:
        self._client = client
        self._users = [f"live-{number}" for number in range(LIVE_USERS)]
        self._sent = dict.fromkeys(self._users, 0)

    async def run(self) -> None:
        """Send until cancelled, without waiting for replies."""
        for number, text in enumerate(short_turns(MAX_TURNS, 7)):
            user = self._users[number % len(self._users)]
            await self._client.remember(text, user_id=user, turn_id=f"t-{number}", wait=False)
            self._sent[user] += 1
            await asyncio.sleep(1 / TURNS_PER_S)

    async def counted(self) -> tuple[int, int]:
        """Return how many turns were sent, and how many are there."""
        found = 0
        for user, sent in self._sent.items():
            async with asyncio.timeout(MAX_S):
                while (there := await count_turns(self._client, user)) < sent:  # noqa: ASYNC110 - it is polled
                    await asyncio.sleep(POLL_S)
            found += there
        return sum(self._sent.values()), found


async def count_turns(client: MemoryClient, user: str) -> int:
    """Count the turns of a user."""
    return int((await client.list_memories(user_id=user, types=["episodic"], limit=1)).total)


@asynccontextmanager
async def filled(memories: int) -> AsyncIterator[tuple[Cluster, list[str]]]:
    """Run a cluster without a worker whose changelogs have so many memories; yield it with its users."""
    users = [(f"user-{number}", USER_MEMORIES) for number in range(memories // USER_MEMORIES)]
    async with new_cluster(kind=Cluster) as cluster:
        # A worker with an empty disk makes words from the table where the group has committed something.
        async with MemoryClient(cluster.bootstrap, timeout=30) as client:
            for user in _one_of_each_partition([user for user, _ in users]):
                await client.remember("Something that is committed.", user_id=user)
        await asyncio.sleep(COMMITTED_S)
        await cluster.workers["worker"].hold()
        topic = f"{group_id(Settings(_env_file=None))}-memories-changelog"
        async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, linger_ms=5) as producer:
            for memory in synthetic_memories(users):
                value, partition = memory.model_dump_json().encode(), partition_of(memory.boundary.encode(), PARTITIONS)
                await producer.send(topic, value, memory.memory_id.encode(), partition)
        await asyncio.sleep(SESSION_TIMEOUT_S + 1)
        yield cluster, [user for user, _ in users]


async def measure(memories: int, copies: int, report: Report, *, only_recovery: bool) -> None:
    """Measure one deployment."""
    more = {"MODESTREAM_STANDBY_COPIES": str(copies)}
    key = f"copies_{copies}"
    async with filled(memories) as (cluster, users):
        report.section(f"{memories:,} memories, {copies} copies")
        began = time.perf_counter()
        await cluster.start_worker("first", more=more)
        await cluster.until_served(first=PARTITIONS)
        report.number(
            f"{key}_recovery_s", "one worker with an empty disk, until it answers", time.perf_counter() - began, "s"
        )
        stat = Path(f"/proc/{cluster.pid('first')}/stat")
        own, all_ended = stat_cpu_seconds(stat), stat_cpu_seconds(stat, with_ended_children=True)
        report.number(
            f"{key}_recovery_own_us", "its processor time a memory, start included", 1e6 * own / memories, "us"
        )
        apart = 1e6 * (all_ended - own) / memories
        report.number(f"{key}_recovery_apart_us", "that of processes that build its lexical index", apart, "us")
        if only_recovery:
            return
        began = time.perf_counter()
        await cluster.start_worker("second", more=more)
        await _until_settled(cluster, ("first", "second"), copies)
        report.number(f"{key}_second_s", "a second worker, until it serves its share", time.perf_counter() - began, "s")
        async with MemoryClient(cluster.bootstrap, timeout=30) as client:
            turns = Turns(client)
            sending = asyncio.create_task(turns.run())
            asked = Asked(client, _one_of_each_partition(users))
            asked.start()
            await asyncio.sleep(10.0)
            report.number(f"{key}_usual_s", "longest wait for an answer, as usual", asked.take(), "s")
            await cluster.workers["second"].hold()
            shutil.rmtree(cluster.directory / "second")
            await _until_settled(cluster, ("first",), 0)
            for user in asked.users:
                await asked._answered(user)  # noqa: SLF001 - its own module
            await asyncio.sleep(2 * ASK_S)
            report.number(f"{key}_lost_s", "longest wait, one worker lost with its disk", asked.take(), "s")
            began = time.perf_counter()
            await cluster.start_worker("third", more=more)
            await _until_settled(cluster, ("first", "third"), copies)
            report.number(
                f"{key}_third_s", "a new one instead, until it serves its share", time.perf_counter() - began, "s"
            )
            await asyncio.sleep(2 * ASK_S)
            await asked.stop()
            report.number(f"{key}_third_wait_s", "longest wait meanwhile", asked.take(), "s")
            sending.cancel()
            sent, found = await turns.counted()
            kept = sum([await count_turns(client, user) for user in users])
            report.fact(f"{key}_turns", "turns sent meanwhile / there", f"{sent} / {found}")
            report.fact(f"{key}_kept", "memories written before / there", f"{memories + PARTITIONS} / {kept}")


async def _until_settled(cluster: Cluster, names: Sequence[str], copies: int) -> None:
    """Wait until the workers share the partitions evenly, and all copies are complete."""
    share = dict.fromkeys(names, PARTITIONS // len(names))
    async with asyncio.timeout(MAX_S):
        while True:
            await cluster.until_served(**share)
            behind = [await cluster.copies(name) for name in names]
            if not copies or all(_is_complete(one) for one in behind):
                return
            await asyncio.sleep(POLL_S)


def _is_complete(copies: Mapping[str, int | None]) -> bool:
    """True if copies are kept and lack next to nothing: turns go on coming."""
    return bool(copies) and all(lacking is not None and lacking <= COMPLETE_LAG for lacking in copies.values())


def _one_of_each_partition(users: Sequence[str]) -> list[str]:
    found = {partition_of(user.encode(), PARTITIONS): user for user in users}
    return [found[partition] for partition in sorted(found)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.lost_machine", description=__doc__)
    parser.add_argument("--memories", type=int, default=20_000)
    parser.add_argument("--only-recovery", action="store_true", help="one worker with an empty disk, nothing else")
    parser.add_argument("--copies", type=int, action="append", help="0 and 1 where none is given; may be repeated")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    report = ToldReport(lambda line: print(line, flush=True))
    with tempfile.TemporaryDirectory(prefix="modestream-models-") as models:
        Models.directory = Path(models)
        for copies in options.copies or (0, 1):
            asyncio.run(measure(options.memories, copies, report, only_recovery=options.only_recovery))
    report.print()


if __name__ == "__main__":
    main()
