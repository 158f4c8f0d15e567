"""Whether records, vectors and words of a stopped in-memory pipeline agree."""

import sqlite3
from contextlib import closing
from pathlib import Path

from agents.rules.index.lexical_document import LexicalDocument
from schemas.state.memories import Memory
from schemas.state.modes import collection_name
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.partition.database import database_path
from tests.worlds.in_memory_pipeline import InMemoryPipeline

_WORDS = """
SELECT memory_id, name, value, occurred_ms, source, superseded, space, held, status, unread, digest
FROM memories JOIN traits ON traits.id = trait JOIN boundaries ON boundaries.id = boundary ORDER BY memory_id
"""


def assert_consistent(pipeline: InMemoryPipeline, partition: int, scratch: Path) -> None:
    """Assert that vectors and words of a partition are those of its records, and that it has no others.

    `scratch` is a new directory for an index of the records.
    """
    memories = list(pipeline.memories.all())
    assert _vectors(pipeline) == {place for memory in memories for place in _due(memory)}
    fresh = SqliteLexicalIndex(scratch)
    fresh.open(partition)
    for memory in memories:
        fresh.put(partition, LexicalDocument(memory))
    fresh.close()
    assert _words(pipeline.directory / "partitions", partition) == _words(scratch, partition)


def _vectors(pipeline: InMemoryPipeline) -> set[tuple[str, str, str]]:
    collections = pipeline.index.collections.items()
    return {
        (memory_id, name, point.content_hash) for name, each in collections for memory_id, point in each.points.items()
    }


def _due(memory: Memory) -> list[tuple[str, str, str]]:
    """Return the vectors of a memory, as `_vectors` does."""
    if memory.embedding.status != "ready" or memory.embedding.place is None:
        return []
    spaces = (memory.embedding.place.space, *memory.embedding.held)
    return [(memory.memory_id, collection_name(memory.mode, space), memory.content_hash) for space in spaces]


def _words(directory: Path, partition: int) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database_path(directory, partition))) as connection:
        return connection.execute(_WORDS).fetchall()
