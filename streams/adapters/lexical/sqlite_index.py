"""The lexical index on SQLite, in the database of each partition.

Terms, postings and statistics are separate for each boundary: the cost of a query depends on its own user's memories,
and no text of another user changes a score.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from modestream_client.vocabulary import EmbeddingStatus

from agents.rules.index.columns import IntArray
from agents.rules.index.lexical_document import LexicalDocument
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.index.vocabulary import Postings
from schemas.state.memories import VectorLocation
from streams.adapters.lexical.columns_cache import MemoryColumnsCache
from streams.adapters.lexical.file import KeyCache, are_words_complete, complete_words, empty_words, ensure_words
from streams.adapters.lexical.reader import LexicalReader
from streams.adapters.lexical.text_analysis import category_term, entity_term
from streams.adapters.lexical.writer import PartitionWriter
from streams.damaged_stores import OnDamage
from streams.partition.database import PartitionDatabase, PartitionDatabases


@dataclass(frozen=True, slots=True)
class _Partition:
    database: PartitionDatabase
    writer: PartitionWriter
    reader: LexicalReader


class SqliteLexicalIndex:
    """All open indexes of one worker. Belongs to one thread."""

    def __init__(self, place: Path | PartitionDatabases, on_damage: OnDamage = lambda: None) -> None:
        """`place`: the databases shared by words and tables, or the directory of databases for words alone."""
        self._owns = isinstance(place, Path)
        self.databases = PartitionDatabases(place, on_damage) if isinstance(place, Path) else place
        self.databases.prepare = ensure_words
        self._open: dict[int, _Partition] = {}

    def open(self, partition: int) -> None:
        self.release(partition)
        database = self.databases.at(partition)
        parts = database, MemoryColumnsCache(), KeyCache(database)
        self._open[partition] = _Partition(database, PartitionWriter(*parts), LexicalReader(*parts))

    def is_open(self, partition: int) -> bool:
        return partition in self._open

    def release(self, partition: int) -> None:
        """Close the index of a partition that leaves."""
        if self._open.pop(partition, None) is not None and self._owns:
            self.databases.close(partition)

    def drop(self, partition: int) -> None:
        self.release(partition)
        database = self.databases.at(partition)
        empty_words(database)
        database.commit()
        if self._owns:
            self.databases.close(partition)

    def is_complete(self, partition: int) -> bool:
        return are_words_complete(self._open[partition].database)

    def complete(self, partition: int) -> None:
        complete_words(self._open[partition].database)
        self.commit(partition)

    def commit(self, partition: int) -> None:
        self._open[partition].database.commit()

    def truncate(self, partition: int) -> None:
        """Empty the write-ahead log. Raises Unavailable while it is read or written."""
        self._open[partition].database.truncate_log()

    def close(self) -> None:
        for partition in list(self._open):
            try:
                if self._owns:
                    self.commit(partition)
            finally:
                self.release(partition)

    def take_changed(self, partition: int) -> set[str]:
        return self._open[partition].writer.take_changed()

    def put(self, partition: int, document: LexicalDocument) -> None:
        self._open[partition].writer.put(document)

    def remove(self, partition: int, memory_id: str) -> None:
        self._open[partition].writer.remove(memory_id)

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
