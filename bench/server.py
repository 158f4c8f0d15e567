"""Turns and questions with vectors on a Qdrant server, beside the embedded index, on the same machine.

Collections of the server get a prefix of their own, and are deleted afterwards.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from bench.harness.processes import cpu_seconds
from bench.harness.report import Report
from bench.harness.system import System, running
from bench.harness.texts import mixed_turns, questions, short_turns
from bench.ingest import ingest
from bench.retrieval import measure_questions_s
from streams.adapters.vectors.server.qdrant_index import QdrantIndex

USER, USERS_TURNS = "asker-0", 600
"""The user of the timed questions, and its memories."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A Qdrant server; no port: REST."""

    url: str
    grpc_port: int | None

    def settings(self, prefix: str) -> Mapping[str, str]:
        """Return the settings of a system that uses it."""
        return {
            "MODESTREAM_QDRANT_URL": self.url,
            "MODESTREAM_QDRANT_GRPC_PORT": str(self.grpc_port or 0),
            "MODESTREAM_TOPIC_PREFIX": prefix,
        }

    async def remove_collections(self, prefix: str) -> None:
        """Delete what a system with this prefix has written."""
        index = QdrantIndex.connect(self.url, prefix=prefix, grpc_port=self.grpc_port)
        try:
            await index.delete_collections()
        finally:
            await index.close()


@dataclass(frozen=True, slots=True)
class ServerLoad:
    """Turns of one run, and questions."""

    turns: int
    questions: int


async def measure_server(
    directory: Path, report: Report, load: ServerLoad, address: ServerAddress, progress: Callable[[str], None]
) -> None:
    """Measure the embedded index, then the server, each in an empty directory."""
    models = {"MODESTREAM_MODEL_DIR": str(directory / "server-models")}
    progress("the embedded index, to compare with the server")
    async with running(directory / "beside-server", models) as system:
        await _measure(system, report, load, "embedded", "the embedded index")
    prefix = f"bench-{uuid4().hex[:8]}."
    progress("the Qdrant server")
    try:
        async with running(directory / "on-server", {**models, **address.settings(prefix)}) as system:
            transport = "REST" if address.grpc_port is None else "gRPC"
            await _measure(system, report, load, "server", f"the Qdrant server, {transport}", prefix)
    finally:
        await address.remove_collections(prefix)


async def _measure(
    system: System, report: Report, load: ServerLoad, key: str, name: str, prefix: str = "memory."
) -> None:
    await ingest(system.bootstrap, short_turns(300, 1), "warm-up", prefix=prefix)
    report.section(f"vectors in {name}")
    worked = cpu_seconds(system)["worker"]
    rates = await ingest(system.bootstrap, short_turns(load.turns, 2), "short", prefix=prefix)
    worked = cpu_seconds(system)["worker"] - worked
    report.number(f"{key}_embedded_per_s", "short turns until embedded", rates.embedded, "turns/s")
    report.number(f"{key}_turn_cpu_ms", "processor time of the worker", 1000 * worked / load.turns, "ms/turn")
    asked = await _asked(system, load, prefix)
    worked = cpu_seconds(system)["worker"]
    p50, p95 = await measure_questions_s(system.bootstrap, USER, asked, prefix)
    worked = cpu_seconds(system)["worker"] - worked
    report.number(f"{key}_question_p50_ms", f"a question over {USERS_TURNS} memories, p50", 1000 * p50, "ms")
    report.number(f"{key}_question_p95_ms", "the same, p95", 1000 * p95, "ms")
    report.number(f"{key}_question_cpu_ms", "processor time of the worker", 1000 * worked / len(asked), "ms/question")


async def _asked(system: System, load: ServerLoad, prefix: str) -> Sequence[str]:
    turns = mixed_turns(USERS_TURNS, 4)
    await ingest(system.bootstrap, turns, "asker", users=1, prefix=prefix)
    return questions(turns, load.questions, 5)
