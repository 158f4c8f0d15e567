"""Run the measurements in sequence; figures that are compared are measured shortly after each other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Literal

from aiokafka import AIOKafkaConsumer, TopicPartition

from bench.gateway import measure_gateway
from bench.harness.echo import measure_echo_s
from bench.harness.embedder_alone import EmbedderAlone
from bench.harness.processes import cpu_seconds, resident
from bench.harness.report import Report
from bench.harness.system import System, running
from bench.harness.texts import mixed_turns, questions, short_turns
from bench.ingest import ingest
from bench.lists import measure_lists
from bench.retrieval import measure_callers, measure_index_queries_s, measure_questions_s, request_bytes
from bench.server import ServerAddress, ServerLoad, measure_server
from streams.up.broker import KafkaInstallation
from streams.up.installing import default_cache_dir, installed_class_path, locked_jars

ASKER = "asker-0"
"""The user of the timed questions: the first one of the label `asker`."""

Part = Literal["gateway", "lists", "server"]
"""What can be measured alone."""

ASKERS_TURNS = 600
"""Memories of that user."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Load: turns of one run, texts for the embedder alone, questions, rounds of the poison test, memories of lists."""

    turns: int
    alone: int
    questions: int
    poison_rounds: int
    listed: int


class Bench:
    """One run of all measurements, in an empty directory."""

    def __init__(
        self,
        directory: Path,
        sizes: Sizes,
        report: Report,
        progress: Callable[[str], None],
        server: ServerAddress | None = None,
    ) -> None:
        """`server` is measured beside the embedded index."""
        self._directory = directory
        self._server = server
        self._data_dir = directory / "data"
        self._lists_dir = directory / "lists"
        self._models = directory / "models"
        self._sizes = sizes
        self._report = report
        self._progress = progress
        self._askers_turns = mixed_turns(ASKERS_TURNS, 4)

    async def run(self, part: Part | None = None) -> None:
        """Run all measurements, or those of one part, and fill the report."""
        if part == "gateway":
            await self._measure_gateway_alone()
        elif part == "lists":
            await self._measure_lists()
        elif part == "server":
            await self._measure_server()
        else:
            await self._run_all()

    async def _measure_gateway_alone(self) -> None:
        async with running(self._data_dir) as system:
            await measure_gateway(system, self._report, ASKER, await self._prepare_asker(system))

    async def _measure_lists(self) -> None:
        await measure_lists(self._lists_dir, self._report, self._sizes.listed, self._progress)

    async def _run_all(self) -> None:
        self._embedders = [EmbedderAlone(self._models, "int8"), EmbedderAlone(self._models, "fp32")]
        self._report_caches()
        self._progress("starting on an empty directory")
        async with running(self._data_dir) as system:
            self._report.section("`streams up` until ready")
            self._report.number("ready_cold_s", "cold: empty directory, model exported", system.seconds_to_ready, "s")
            idle = resident(system)
            await self._measure_ingestion(system)
            round_trip = await self._time_questions(system)
            self._progress("the gateway")
            await measure_gateway(system, self._report, ASKER, round_trip[0])
            loaded = resident(system)
        await self._report_question_parts(*round_trip)
        self._report_memory(idle, loaded)
        await self._measure_restart()
        await self._measure_lists()
        await self._measure_server()

    async def _measure_server(self) -> None:
        if self._server is None:
            self._progress("no Qdrant server is given, so none is measured")
            return
        load = ServerLoad(self._sizes.turns, self._sizes.questions)
        await measure_server(self._directory, self._report, load, self._server, self._progress)

    async def _measure_ingestion(self, system: System) -> None:
        await ingest(system.bootstrap, short_turns(300, 1), "warm-up")
        await self._measure_ingest(system, "short", "turns of 8 to 12 words", short_turns(self._sizes.turns, 2))
        await self._measure_ingest(system, "mixed", "turns of mixed length", mixed_turns(self._sizes.turns, 3))
        await self._measure_poison(system)

    async def _measure_ingest(self, system: System, key: str, name: str, turns: Sequence[str]) -> None:
        self._progress(f"{len(turns)} {name}")
        before = self._measure_embedders(turns)
        worked = cpu_seconds(system)
        rates = await ingest(system.bootstrap, turns, key)
        worked = {name: seconds - worked[name] for name, seconds in cpu_seconds(system).items()}
        int8, fp32 = (mean(both) for both in zip(before, self._measure_embedders(turns), strict=True))
        report = self._report
        report.section(f"{len(turns):,} {name}")
        report.number(f"{key}_int8_alone_per_s", "fastembed alone, int8, 1 thread", int8, "texts/s")
        report.number(f"{key}_fp32_alone_per_s", "fastembed alone, fp32, 1 thread", fp32, "texts/s")
        report.number(f"{key}_retrievable_per_s", "until retrievable", rates.retrievable, "turns/s")
        report.number(f"{key}_embedded_per_s", "until embedded", rates.embedded, "turns/s")
        report.ratio(f"{key}_retrievable_to_int8", "until retrievable / int8 alone", rates.retrievable / int8)
        report.ratio(f"{key}_embedded_to_int8", "until embedded / int8 alone", rates.embedded / int8, ">= 0.9, or:")
        report.ratio(f"{key}_embedded_to_fp32", "until embedded / fp32 alone", rates.embedded / fp32, ">= 1.8")
        for process, seconds in worked.items():
            report.number(
                f"{key}_{process}_cpu_ms", f"processor time of the {process}", 1000 * seconds / len(turns), "ms/turn"
            )

    def _measure_embedders(self, turns: Sequence[str]) -> tuple[float, float]:
        """Return texts per second of both embedders, on an even sample."""
        sample = turns[:: max(1, len(turns) // self._sizes.alone)]
        int8, fp32 = (embedder.texts_per_second(sample) for embedder in self._embedders)
        return int8, fp32

    async def _measure_poison(self, system: System) -> None:
        """Alternate runs with and without invalid records."""
        count, rounds = self._sizes.turns, self._sizes.poison_rounds
        garbage = range(500, count, 1000) if count > 500 else range(0, count, 1000)
        clean, poisoned = [], []
        before = await _count_dead_letters(system.bootstrap)
        for number in range(rounds):
            self._progress(f"poison, round {number + 1} of {rounds}")
            turns = short_turns(count, 10 + number)
            clean.append(await ingest(system.bootstrap, turns, f"clean{number}"))
            poisoned.append(await ingest(system.bootstrap, turns, f"poisoned{number}", garbage=garbage))
        found = await _count_dead_letters(system.bootstrap) - before
        report = self._report
        report.section(f"0.1 % garbage in {rounds} x {count:,} turns")
        for kind in ("retrievable", "embedded"):
            ratio = mean(getattr(one, kind) for one in poisoned) / mean(getattr(one, kind) for one in clean)
            report.ratio(f"poison_{kind}", f"throughput with / without, until {kind}", ratio, "> 0.95")
        report.fact("poison_dead_letters", "dead letters / garbage", f"{found} / {rounds * len(garbage)}")

    async def _time_questions(self, system: System) -> tuple[list[str], float, float, float]:
        """Return the questions, their median and 95th percentile round trip, and that of the echo."""
        self._progress("questions")
        asked = await self._prepare_asker(system)
        request = request_bytes(ASKER, asked[0])
        before = await measure_echo_s(system.bootstrap, request, self._sizes.questions)
        p50, p95 = await measure_questions_s(system.bootstrap, ASKER, asked)
        after = await measure_echo_s(system.bootstrap, request, self._sizes.questions)
        await measure_callers(system.bootstrap, ASKER, self._askers_turns, self._report)
        return asked, p50, p95, mean((before, after))

    async def _prepare_asker(self, system: System) -> list[str]:
        """Write the memories of the user of the timed questions; return the questions."""
        await ingest(system.bootstrap, self._askers_turns, "asker", users=1)
        return questions(self._askers_turns, self._sizes.questions, 5)

    async def _report_question_parts(self, asked: list[str], p50: float, p95: float, echo: float) -> None:
        int8 = self._embedders[0]
        embedding = int8.seconds_a_text(asked)
        queries = await measure_index_queries_s(self._data_dir, ASKER, asked)
        report = self._report
        report.section(f"a question over Kafka, a user of {ASKERS_TURNS} memories among others' thousands")
        report.number("question_p50_ms", "round trip, p50", 1000 * p50, "ms", "<= 8 ms, or:")
        report.number("question_p95_ms", "round trip, p95", 1000 * p95, "ms")
        report.number("echo_p50_ms", "bare Kafka echo, p50", 1000 * echo, "ms")
        report.number("query_embedding_p50_ms", "one query embedding, p50", 1000 * embedding, "ms")
        report.number("index_queries_p50_ms", "word, vector and token queries, p50", 1000 * queries, "ms")
        ratio = p50 / (echo + embedding + queries)
        report.ratio("question_to_parts", "round trip / (echo + embedding + queries)", ratio, "<= 1.3")

    async def _measure_restart(self) -> None:
        """Start a second time, with one embedding thread, as on a single core."""
        self._progress("starting again on the same directory, with one embedding thread")
        async with running(self._data_dir, {"MODESTREAM_EMBEDDING_THREADS": "1"}) as system:
            self._report.section("the same directory again, with one embedding thread")
            self._report.number("ready_warm_s", "`streams up` until ready, warm", system.seconds_to_ready, "s")
            await ingest(system.bootstrap, short_turns(300, 6), "warm-up-again")
            turns = short_turns(self._sizes.turns, 7)
            await self._measure_ingest(system, "one_thread", "short turns, one embedding thread", turns)

    def _report_memory(self, idle: dict[str, dict[str, float]], loaded: dict[str, dict[str, float]]) -> None:
        self._report.section("resident memory in MiB, after the start -> after the load")
        for name, before in idle.items():
            for kind, mib in before.items():
                row = f"{mib:.0f} -> {loaded[name][kind]:.0f}"
                self._report.fact(f"{name}_{kind}_mib", f"{name}, {kind}", row)

    def _report_caches(self) -> None:
        jars = installed_class_path(locked_jars(), default_cache_dir())
        recorded = jars is not None and KafkaInstallation(tuple(jars)).archive.exists()
        self._report.section("caches before the run")
        self._report.fact("kafka_cached", "Kafka's jars cached", jars is not None)
        self._report.fact("kafka_recorded", "Kafka's start recorded", recorded)


async def _count_dead_letters(bootstrap: str) -> int:
    """The number of records on the topic."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
    await consumer.start()
    try:
        partitions = [TopicPartition("memory.dead-letters", number) for number in range(4)]
        ends = await consumer.end_offsets(partitions)
        return int(sum(ends.values()))
    finally:
        await consumer.stop()
