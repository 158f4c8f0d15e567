"""Fill the table, lexical index and vector index of a stopped worker with synthetic memories and random vectors.

Saves the hours that a model takes to embed as many turns. Everything is written by the product's own adapters, so a
worker that starts afterwards finds the state that it would have written itself.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from modestream_client import MemoryClient

from agents.rules.index.lexical_document import LexicalDocument
from agents.rules.text.tokenizer import extract_entities
from bench.harness.system import running
from bench.harness.texts import mixed_turns
from schemas.models.vectors import Point
from schemas.state.memories import Embedding, Memory, TextVersion, VectorLocation
from schemas.state.modes import GENERAL, VectorSpace
from streams.adapters.embedding.inference.token_vectors import dequantise_tokens, quantise_tokens
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.adapters.vectors.embedded.edge_index import PartitionedIndex
from streams.runtime.awaited_table import databases_of
from streams.runtime.kafka_app import create_kafka_app, partition_locks_of
from streams.settings import Settings
from streams.tables.memory_tables import MemoryTable, row_of
from streams.wire.partitioning import partition_of

BATCH = 1024
"""Memories per write."""

PARTITIONS = 4
"""The worker's default."""

START = datetime(2026, 1, 1, 9, tzinfo=UTC)
"""Time of each user's first turn."""

TOKENS_A_TURN = 15
"""Token vectors of a synthetic turn: the mean of content tokens in LoCoMo's turns."""

DIFFERENT_TEXTS = 20_000
"""Distinct texts, shared by users: memories of different users are never compared."""

Progress = Callable[[int], None]
"""Called with the number of memories written."""


async def prepare(data_dir: Path, users: Sequence[tuple[str, int]], progress: Progress) -> None:
    """Make a data directory whose users have this number of memories each."""
    async with running(data_dir) as system, MemoryClient(system.bootstrap, timeout=60) as client:
        await client.remember("So that the collection is there.", user_id="first")
        while not (await client.command("health", user_id="first"))["modes"]["general"]["ready"]:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    await fill(data_dir, users, progress)


async def fill(data_dir: Path, users: Sequence[tuple[str, int]], progress: Progress) -> None:
    """Write this number of memories for each user, all embedded in the space that the worker has created before."""
    async with _stores(data_dir) as (table, words, index):
        space = await _space(index)
        rest = synthetic_memories(users, space.fingerprint.digest)
        random, written = np.random.default_rng(1), 0
        while batch := list(islice(rest, BATCH)):
            for memory in batch:
                partition = partition_of(memory.boundary.encode(), PARTITIONS)
                table.table.rows(partition).put(memory.memory_id.encode(), row_of(memory))
                words.put(partition, LexicalDocument(memory))
            for partition in range(PARTITIONS):
                words.commit(partition)
            points = _points(batch, space, random)
            for partition in range(PARTITIONS):
                await index.at(partition).upsert(space, [one for one in points if one.partition == partition])
            written += len(batch)
            progress(written)


async def _space(index: PartitionedIndex) -> VectorSpace:
    """Return the space of the collection that the worker has made, in one partition."""
    found = [await index.at(partition).spaces() for partition in range(PARTITIONS)]
    return VectorSpace(GENERAL, next(fingerprint for spaces in found for fingerprint in spaces.values()))


@asynccontextmanager
async def _stores(data_dir: Path) -> AsyncIterator[tuple[MemoryTable, SqliteLexicalIndex, PartitionedIndex]]:
    """Open the stores of the stopped worker."""
    app = create_kafka_app(Settings(data_dir=data_dir, partitions=PARTITIONS), "filling")
    locks = partition_locks_of(app)
    locks.assign(range(PARTITIONS))
    await locks.acquire()
    table, words = MemoryTable(app), SqliteLexicalIndex(databases_of(app))
    index = PartitionedIndex(data_dir / "vectors")
    for partition in range(PARTITIONS):
        words.open(partition)
    try:
        yield table, words, index
    finally:
        words.close()
        await index.close()
        databases_of(app).close_all()
        locks.close()
        await asyncio.sleep(0)


def synthetic_memories(users: Sequence[tuple[str, int]], space: str | None = None) -> Iterator[Memory]:
    """Yield this number of memories for each user, embedded in a space; without one none of them has a vector."""
    texts = mixed_turns(DIFFERENT_TEXTS, 11)
    named = [extract_entities(text) for text in texts]
    for place, (user, count) in enumerate(users):
        for number in range(count):
            chosen = (place * 7919 + number) % DIFFERENT_TEXTS
            yield _memory(user, number, texts[chosen], named[chosen], space)


def _memory(user: str, number: int, text: str, named: tuple[str, ...], space: str | None) -> Memory:
    moment = START + timedelta(minutes=7 * number)
    return Memory(
        memory_id=str(uuid.uuid5(uuid.NAMESPACE_OID, f"{user}/{number}")),
        turn_id=f"t-{number}",
        conversation_id=f"c-{number // 30}",
        scope={"user_id": user, "project_id": "default"},
        boundary=user,
        mode=GENERAL,
        mode_source="fallback",
        role="assistant" if number % 2 else "user",
        text=text,
        occurred_at=moment,
        source=number,
        latest=number,
        latest_at=moment,
        entities=named,
        versions=(TextVersion(text_hash="made", first_seen=moment),),
        content_hash="made",
        embedding=Embedding(status="failed")
        if space is None
        else Embedding(
            status="ready", place=VectorLocation(mode=GENERAL, space=space), content_hash="made", embedded_at=moment
        ),
    )


def _points(memories: Sequence[Memory], space: VectorSpace, random: np.random.Generator) -> list[Point]:
    dim = space.fingerprint.token_dim
    pooled = _units(random, len(memories), space.fingerprint.dim)
    tokens = dequantise_tokens(quantise_tokens(_units(random, len(memories) * TOKENS_A_TURN, dim))) if dim else None
    return [
        Point(
            memory_id=memory.memory_id,
            vector=pooled[place],
            tokens=None if tokens is None else tokens[place * TOKENS_A_TURN : (place + 1) * TOKENS_A_TURN],
            boundary=memory.boundary,
            partition=partition_of(memory.boundary.encode(), PARTITIONS),
            scope=memory.scope,
            mode=memory.mode,
            type=memory.type,
            occurred_ms=memory.occurred_ms,
            content_hash=memory.content_hash,
        )
        for place, memory in enumerate(memories)
    ]


def _units(random: np.random.Generator, rows: int, dim: int) -> Any:
    found = random.standard_normal((rows, dim), dtype=np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)
