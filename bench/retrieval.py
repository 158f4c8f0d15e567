"""Latency of a retrieve request, and of its parts alone on the same data."""

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles

import numpy as np
from modestream_client import MemoryClient

from agents.retrieval.vector_search import DENSE_LIMIT, MAXSIM_FULL_SCAN_LIMIT
from agents.rules.query.questions import parse_question
from bench.harness.asking import ask, report_latency
from bench.harness.report import Report
from bench.harness.texts import distinct_questions
from schemas.models.vectors import MemoryFilter
from schemas.state.modes import GENERAL, VectorSpace
from streams.adapters.embedding.catalog.presets import build_catalog
from streams.adapters.embedding.inference.fastembed_model import FastembedModel
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.adapters.vectors.embedded.edge_index import PartitionedIndex
from streams.settings import Settings
from streams.wire.partitioning import partition_of

WARM = 50
"""First questions, not counted."""

QUESTIONS_AT_ONCE = {1: 300, 8: 600, 32: 1200}
"""Questions by callers that ask at once."""

WANTED_AT_ONCE = {32: ">= 250"}
"""Answers a second."""


async def measure_questions_s(
    bootstrap: str, user: str, asked: Sequence[str], prefix: str = "memory."
) -> tuple[float, float]:
    """Return median and 95th percentile of the round trip in seconds, one question at a time."""
    async with MemoryClient(bootstrap, user_id=user, timeout=30, topic_prefix=prefix) as client:
        times = []
        for question in [*asked[:WARM], *asked]:
            began = time.perf_counter()
            await client.retrieve(question, read_after=None)
            times.append(time.perf_counter() - began)
    counted = times[WARM:]
    return median(counted), quantiles(counted, n=20)[-1]


async def measure_callers(bootstrap: str, user: str, turns: Sequence[str], report: Report) -> None:
    """Report answers a second and latency, by callers of which each waits for its answer before it asks again."""
    async with MemoryClient(bootstrap, timeout=30) as client:
        for callers, count in QUESTIONS_AT_ONCE.items():
            latency = await ask(client, user, distinct_questions(list(turns), count, callers), callers)
            report.section(f"questions over Kafka, a user of {len(turns)} memories, callers at once: {callers}")
            report_latency(report, f"callers_{callers}", latency, WANTED_AT_ONCE.get(callers, ""))


def request_bytes(user: str, question: str) -> bytes:
    """Return a request as the client writes it, for the echo baseline."""
    request = {"schema": "retrieve.v1", "scope": {"user_id": user, "project_id": "default"}, "query": question}
    return json.dumps(request).encode()


async def measure_index_queries_s(data_dir: Path, user: str, asked: Sequence[str]) -> float:
    """Return the median time of one question's index queries in seconds, on the indexes of the stopped system.

    Queries: terms, entities, nearest by the pooled vector, best by late interaction over all of the user's memories.
    Questions are embedded by the system's own model, because fastembed gives no token vectors.
    """
    partition, settings = partition_of(user.encode(), Settings().partitions), Settings(data_dir=data_dir)
    model = FastembedModel.load(build_catalog(settings.models, {}, settings.embedding_precision)[GENERAL].local)
    words, index = SqliteLexicalIndex(data_dir / "partitions"), PartitionedIndex(data_dir / "vectors").at(partition)
    words.open(partition)
    try:
        [fingerprint] = (await index.spaces()).values()
        space, where = VectorSpace(GENERAL, fingerprint), MemoryFilter(boundary=user, modes=(GENERAL,))
        times = []
        for question in [*asked[:WARM], *asked]:
            encoded = model.query(question)
            rows = encoded.tokens / np.float32(max(len(encoded.tokens), 1))
            parsed = parse_question(question, ())
            began = time.perf_counter()
            words.postings(partition, user, parsed.terms)
            words.entity_postings(partition, user, parsed.entities)
            await index.search(space, encoded.pooled, where, DENSE_LIMIT)
            await index.maxsim(space, rows, where, MAXSIM_FULL_SCAN_LIMIT)
            times.append(time.perf_counter() - began)
        return median(times[WARM:])
    finally:
        words.close()
        await index.close()
        await asyncio.sleep(0)
