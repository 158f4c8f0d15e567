"""Run the workloads, each twice: counted, and sampled apart from that."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from modestream_client import MemoryClient

from bench.harness.asking import Latency, ask, report_latency
from bench.harness.report import Report
from bench.harness.system import System
from bench.harness.texts import distinct_questions, mixed_turns, short_turns
from bench.ingest import ingest
from bench.profile.counters import Counters
from bench.profile.sampler import SamplerUnavailable, sample_while
from bench.profile.samples import stage_costs
from bench.profile.tables import Unit, report_costs, report_stages
from bench.profile.threads import find_consumer_thread

ASKER = "asker-0"
"""The user of the questions: the first one of the label `asker`."""

POLL_INTERVAL_S = 0.5
"""Between two commands that ask what is embedded: they cost the worker hundredths of a turn."""

COUNTED, SAMPLED = 1, 2
"""Rounds. Their texts differ: a repeated text is not embedded again."""


WARM = 0.25
"""Share of the questions that is asked before, and not counted."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Turns of one run, memories of the user that asks, and questions by callers at once."""

    turns: int
    memories: int
    questions: dict[int, int]


class Profile:
    """One profile of a running system."""

    def __init__(self, system: System, client: MemoryClient, sizes: Sizes, report: Report) -> None:
        self._system = system
        self._client = client
        self._sizes = sizes
        self._report = report
        self._missing: str | None = None

    async def run(self, progress: Callable[[str], None]) -> None:
        """Run all workloads and fill the report."""
        await self._ingest(short_turns(self._sizes.memories, 1), "warm-up")
        self._consumer = await find_consumer_thread(self._system.pid("worker"))
        progress("turns")
        await self._measure_turns("short", "turns of 8 to 12 words", short_turns)
        await self._measure_turns("longer", "turns of 5 to 100 words", mixed_turns)
        memories = mixed_turns(self._sizes.memories, 4)
        await ingest(self._system.bootstrap, memories, "asker", users=1)
        for callers in self._sizes.questions:
            progress(f"questions, {callers} callers")
            await self._measure_questions(callers, memories)

    async def _measure_turns(self, key: str, name: str, texts: Callable[[int, int], list[str]]) -> None:
        count = self._sizes.turns

        async def run(number: int) -> None:
            await self._ingest(texts(count, 10 + number), f"{key}-{number}")

        self._report.section(f"processor time each of {count:,} {name}")
        await self._measure(key, "turn", count, run)

    async def _measure_questions(self, callers: int, memories: Sequence[str]) -> None:
        count, key = self._sizes.questions[callers], f"questions_{callers}"
        latencies: list[Latency] = []

        async def run(number: int, share: float = 1.0) -> None:
            asked = distinct_questions(list(memories), round(share * count), 100 * callers + number)
            latencies.append(await ask(self._client, ASKER, asked, callers))

        await run(COUNTED - 1, WARM)
        self._report.section(f"processor time each of {count:,} questions, callers at once: {callers}")
        await self._measure(key, "question", count, run)
        report_latency(self._report, key, latencies[COUNTED])

    async def _measure(self, key: str, unit: Unit, count: int, run: Callable[[int], Awaitable[None]]) -> None:
        before = Counters.read(self._system, self._consumer)
        await run(COUNTED)
        costs = Counters.read(self._system, self._consumer).costs_since(before, count)
        report_costs(self._report, key, unit, costs)
        if self._missing is not None:
            return
        try:
            samples = await sample_while(self._system.pid("worker"), lambda: run(SAMPLED))
        except SamplerUnavailable as problem:
            self._missing = str(problem)
            self._report.fact("no_samples", "no stages", self._missing)
        else:
            report_stages(self._report, key, stage_costs(samples, costs.thread_ms), sum(one.count for one in samples))

    async def _ingest(self, texts: Sequence[str], label: str) -> None:
        await ingest(self._system.bootstrap, texts, label, poll_interval_s=POLL_INTERVAL_S)
