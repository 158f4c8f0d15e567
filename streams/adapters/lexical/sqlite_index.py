"""The lexical index on SQLite: one file for each Kafka partition, so that a partition is dropped with its file.

Terms, postings and statistics are separate for each boundary: the cost of a query depends on its own user's memories,
and no text of another user changes a score.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection

from modestream_client.vocabulary import EmbeddingStatus

from agents.rules.index.bm25 import Postings
from agents.rules.index.columns import IntArray
from agents.rules.index.lexical_document import LexicalDocument
from agents.rules.index.memory_columns import MemoryColumns
from schemas.failures import Unavailable
from schemas.state.memories import VectorLocation
from streams.adapters.lexical.columns_cache import MemoryColumnsCache
from streams.adapters.lexical.file import (
    KeyCache,
    delete_file,
    index_path,
    open_file,
    set_damage_aside,
    translate_sqlite_errors,
)
from streams.adapters.lexical.reader import LexicalReader
from streams.adapters.lexical.text_analysis import category_term, entity_term
from streams.adapters.lexical.unfinished import UnfinishedIds, delete_unfinished
from streams.adapters.lexical.writer import PartitionWriter
from streams.damaged_stores import OnDamage


@dataclass(frozen=True, slots=True)
class _Partition:
    connection: Connection
    writer: PartitionWriter
    reader: LexicalReader
    unfinished: UnfinishedIds


class SqliteLexicalIndex:
    """All open indexes of one worker. Belongs to one thread."""

    def __init__(self, directory: Path, on_damage: OnDamage = lambda: None) -> None:
        """`on_damage` is called when a file turns out damaged in use and was set aside."""
        self._directory = directory
        self._on_damage = on_damage
        self._open: dict[int, _Partition] = {}

    def open(self, partition: int) -> None:
        self._close(partition)
        connection = open_file(self._path(partition))
        parts = connection, MemoryColumnsCache(), KeyCache(connection)
        translate = set_damage_aside(self._path(partition), self._on_damage)
        unfinished = UnfinishedIds(self._path(partition))
        writer, reader = PartitionWriter(*parts, translate), LexicalReader(*parts, translate)
        self._open[partition] = _Partition(connection, writer, reader, unfinished)

    def release(self, partition: int) -> None:
        """Close the index of a partition that leaves; what is not committed is applied by its next owner."""
        self._close(partition)

    def drop(self, partition: int) -> None:
        self._close(partition)
        delete_file(self._path(partition))
        delete_unfinished(self._path(partition))

    def commit(self, partition: int) -> None:
        self._open[partition].writer.commit()

    def rotate_unfinished(self, partition: int) -> None:
        self._open[partition].unfinished.rotate()

    def interrupted(self, partition: int) -> Collection[str]:
        return self._open[partition].unfinished.interrupted

    def clear_interrupted(self, partition: int) -> None:
        self._open[partition].unfinished.clear()

    def truncate(self, partition: int) -> None:
        """Empty the write-ahead log, which holds deleted rows until they are overwritten.

        Raises Unavailable while another connection reads, or a transaction is open.
        """
        execute = self._open[partition].connection.execute
        with translate_sqlite_errors():
            [wait_ms] = execute("PRAGMA busy_timeout").fetchone()
            # No other work of the worker waits for a reader.
            execute("PRAGMA busy_timeout = 0")
            try:
                [busy, *_] = execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                execute(f"PRAGMA busy_timeout = {wait_ms}")
        if busy:
            raise Unavailable("the lexical index is read by another connection")

    def close(self) -> None:
        for partition in list(self._open):
            try:
                self.commit(partition)
            finally:
                self._close(partition)

    def applied(self, partition: int) -> Mapping[str, int]:
        opened = self._open[partition]
        return {**opened.reader.applied(), **opened.writer.progress}

    def set_applied(self, partition: int, topic: str, next_offset: int) -> None:
        self._open[partition].writer.set_applied(topic, next_offset)

    def take_changed(self, partition: int) -> set[str]:
        return self._open[partition].writer.take_changed()

    def put(self, partition: int, document: LexicalDocument) -> None:
        opened = self._open[partition]
        opened.unfinished.add(document.memory.memory_id)
        opened.writer.put(document)

    def remove(self, partition: int, memory_id: str) -> None:
        opened = self._open[partition]
        opened.unfinished.add(memory_id)
        opened.writer.remove(memory_id)

    def has(self, partition: int, memory_id: str) -> bool:
        return self._open[partition].reader.has(memory_id)

    def memory_columns(self, partition: int, boundary: str) -> MemoryColumns:
        return self._open[partition].reader.memory_columns(boundary)

    def postings(self, partition: int, boundary: str, terms: Sequence[str], *, fuzzy: bool = True) -> list[Postings]:
        return self._open[partition].reader.postings(boundary, terms, fuzzy=fuzzy)

    def entity_postings(self, partition: int, boundary: str, entities: Sequence[str]) -> list[Postings]:
        return self._open[partition].reader.exact_postings(boundary, [entity_term(entity) for entity in entities])

    def category_postings(self, partition: int, boundary: str, names: Sequence[str]) -> list[Postings]:
        return self._open[partition].reader.exact_postings(boundary, [category_term(name) for name in names])

    def counts(
        self, partition: int, boundary: str, projects: Collection[str] | None = None
    ) -> Mapping[str, Mapping[EmbeddingStatus, int]]:
        return self._open[partition].reader.counts(boundary, projects)

    def numbers_with_status(self, partition: int, boundary: str, status: EmbeddingStatus) -> IntArray:
        return self._open[partition].reader.numbers_with_status(boundary, status)

    def with_status(self, partition: int, statuses: Iterable[EmbeddingStatus]) -> Iterator[str]:
        return self._open[partition].reader.with_status(statuses)

    def awaiting_understanding(self, partition: int) -> Iterator[str]:
        return self._open[partition].reader.awaiting_understanding()

    def ready_places(self, partition: int) -> Mapping[VectorLocation, int]:
        return self._open[partition].reader.ready_places()

    def _path(self, partition: int) -> Path:
        return index_path(self._directory, partition)

    def _close(self, partition: int) -> None:
        opened = self._open.pop(partition, None)
        if opened is not None:
            opened.unfinished.close()
            with translate_sqlite_errors():
                opened.connection.close()
