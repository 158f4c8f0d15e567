"""The lexical index on SQLite, in the database of each partition.

Terms, postings and statistics are separate for each boundary: the cost of a query depends on its own user's memories,
and no text of another user changes a score.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import get_args

import numpy as np
import orjson
from modestream_client.vocabulary import EmbeddingStatus

from agents.rules.index.columns import IntArray
from agents.rules.index.lexical_document import MAX_INDEXED_TERMS, LexicalDocument
from agents.rules.index.memory_columns import MemoryColumns, MemoryRow, Trait
from agents.rules.index.vocabulary import Postings, Vocabulary
from schemas.scopes import PROJECT_FIELD
from schemas.state.memories import VectorLocation, boundary_of, turn_index_names
from streams.adapters.lexical.columns_cache import MemoryColumnsCache
from streams.adapters.lexical.file import (
    NUMBER_BITS,
    KeyCache,
    are_words_complete,
    complete_words,
    empty_words,
    ensure_words,
)
from streams.adapters.lexical.text_analysis import AFTER_PREFIXES, COUNT_BITS, COUNT_MASK, category_term, entity_term
from streams.adapters.lexical.writer import PartitionWriter
from streams.damaged_stores import OnDamage
from streams.partition.database import PartitionDatabase, PartitionDatabases

_PAGE = 1000

MAX_CONTAINING_WORDS = 2_000
"""Words of one fragment whose memories are looked up: more are in most memories."""

NO_POSTINGS = Postings(np.zeros(0, np.int64), np.zeros(0, np.int64))

_POSTINGS = (
    "SELECT (SELECT group_concat(entry) FROM postings WHERE boundary = ?1 AND term = asked.value),"
    " (SELECT group_concat(entry || ',' || passages) FROM postings"
    "  WHERE boundary = ?1 AND term = asked.value AND passages <> 0)"
    " FROM json_each(?2) AS asked ORDER BY asked.key"
)
"""One row a term, with its postings as text: a third of the time of one row a posting. Postings of long texts again
with their passages: most have none."""

_STATUS_PAGE = "SELECT row, memory_id FROM memories WHERE status = ? AND row > ? ORDER BY row LIMIT ?"

_UNREAD_PAGE = "SELECT row, memory_id FROM memories WHERE unread = 1 AND row > ? ORDER BY row LIMIT ?"

_UNREADY_PAGE = _STATUS_PAGE.replace("ORDER BY", "AND status <> 'ready' ORDER BY")

_UNREADY_NUMBERS = (
    "SELECT group_concat(row - ?) FROM memories WHERE status = ? AND row >= ? AND row < ? AND status <> 'ready'"
)
"""The last two repeat the condition of their partial index, so that SQLite uses it."""


class LexicalReader:
    """The read side of one open index."""

    def __init__(self, database: PartitionDatabase, cache: MemoryColumnsCache, keys: KeyCache) -> None:
        self._translate = database.translate
        self._execute = database.execute
        self._cache = cache
        self._keys = keys

    def has(self, memory_id: str) -> bool:
        with self._translate():
            return self._execute("SELECT 1 FROM memories WHERE memory_id = ?", (memory_id,)).fetchone() is not None

    def memory_columns(self, boundary: str) -> MemoryColumns:
        # A question calls this a dozen times, as it may see another version after each pause.
        key = self._keys.cached(boundary)
        known = None if key is None else self._cache.get(key)
        return self._columns_of(boundary) if known is None else known

    def _columns_of(self, boundary: str) -> MemoryColumns:
        with self._translate():
            key = self._keys.boundary(boundary)
            if key is None:
                return MemoryColumns()
            columns = self._cache.get(key)
            if columns is None:
                stored = self._execute("SELECT id, value FROM traits WHERE boundary = ?", (key,))
                traits = {trait: Trait.loads(value) for trait, value in stored}
                rows = self._execute(
                    "SELECT row - ?, memory_id, trait, occurred_ms, source, length, importance, superseded, space,"
                    " language, marks, held, keys, accepted_ms, superseded_ms FROM memories WHERE row >= ? AND row < ?",
                    (key << NUMBER_BITS, key << NUMBER_BITS, (key + 1) << NUMBER_BITS),
                )
                names = turn_index_names(boundary_of(boundary))
                columns = MemoryColumns(
                    list(map(MemoryRow._make, rows)),
                    traits,
                    self._cache.history(key),
                    turns=lambda: [self.memory_columns(turns) for turns in names],
                )
                self._cache.put(key, columns)
            return columns

    def postings(self, boundary: str, terms: Sequence[str], *, fuzzy: bool) -> list[Postings]:
        """Return the postings of each term, with those of the words that it matches (see the port)."""
        columns = self.memory_columns(boundary)
        with self._translate():
            key = self._keys.boundary(boundary)
            if key is None or not terms:
                return [NO_POSTINGS] * len(terms)
            vocabulary = self._cache.vocabulary(key, self._read_vocabulary)
            return self._postings_of(key, vocabulary.expand_terms(terms, columns.languages(), fuzzy=fuzzy))

    def exact_postings(self, boundary: str, terms: Sequence[str]) -> list[Postings]:
        """Return the postings of each term in exactly this form."""
        if not terms:
            return []
        with self._translate():
            key = self._keys.boundary(boundary)
            return [NO_POSTINGS] * len(terms) if key is None else self._postings_of(key, [[term] for term in terms])

    def _read_vocabulary(self, boundary: int) -> Vocabulary:
        rows = self._execute(
            "SELECT DISTINCT term FROM postings WHERE boundary = ? AND term > ?", (boundary, AFTER_PREFIXES)
        )
        return Vocabulary(chain.from_iterable(rows))

    def _postings_of(self, boundary: int, words: Sequence[Sequence[str]]) -> list[Postings]:
        """Return the postings of each list of words, merged as those of one word; in one statement."""
        flat = orjson.dumps(list(chain.from_iterable(words))).decode()
        found = iter(self._execute(_POSTINGS, (boundary, flat)).fetchall())
        return [_merge(list(islice(found, len(forms)))) for forms in words]

    def counts(self, boundary: str, projects: Collection[str] | None = None) -> dict[str, dict[EmbeddingStatus, int]]:
        counted: defaultdict[str, Counter[EmbeddingStatus]] = defaultdict(Counter)
        with self._translate():
            key = self._keys.boundary(boundary)
            if key is None:
                return {}
            rows = self._execute(
                "SELECT value, status, count(*) FROM memories JOIN traits ON traits.id = memories.trait"
                " WHERE row >= ? AND row < ? GROUP BY trait, status",
                (key << NUMBER_BITS, (key + 1) << NUMBER_BITS),
            )
            for value, status, number in rows:
                kind = Trait.loads(value).kind
                if projects is None or dict(kind.scope)[PROJECT_FIELD] in projects:
                    counted[kind.mode][status] += number
        return {mode: dict(statuses) for mode, statuses in counted.items()}

    def numbers_with_status(self, boundary: str, status: EmbeddingStatus) -> IntArray:
        """Return the numbers of a boundary's memories with this status; ready ones are all the others."""
        if status == "ready":
            ready = self.memory_columns(boundary).columns.live.copy()
            for other in get_args(EmbeddingStatus):
                if other != "ready":
                    ready[self.numbers_with_status(boundary, other)] = False
            return np.flatnonzero(ready)
        with self._translate():
            key = self._keys.boundary(boundary)
            if key is None:
                return np.zeros(0, np.int64)
            first, after = key << NUMBER_BITS, (key + 1) << NUMBER_BITS
            [found] = self._execute(_UNREADY_NUMBERS, (first, status, first, after)).fetchone()
            return np.fromstring(found or "", np.int64, sep=",")

    def numbers_containing(self, boundary: str, fragments: Sequence[str]) -> IntArray | None:
        """Return the numbers of the memories that may have words with each of these fragments (see the port)."""
        columns = self.memory_columns(boundary)
        with self._translate():
            if (key := self._keys.boundary(boundary)) is None:
                return np.zeros(0, np.int64)
            vocabulary = self._cache.vocabulary(key, self._read_vocabulary)
            words = [vocabulary.containing(fragment) for fragment in fragments]
            words = [each for each in words if len(each) <= MAX_CONTAINING_WORDS]
            if not words:
                return None
            # Of a text with more different words some are not indexed.
            matching = columns.columns.live.copy()
            for postings in self._postings_of(key, words):
                has_word = columns.columns.lengths >= MAX_INDEXED_TERMS
                has_word[postings.numbers] = True
                matching &= has_word
            return np.flatnonzero(matching)

    def with_status(self, statuses: Iterable[EmbeddingStatus]) -> Iterator[str]:
        """Yield the ids of all memories with one of these statuses, one status after the other."""
        for status in statuses:
            yield from self._ids(_STATUS_PAGE if status == "ready" else _UNREADY_PAGE, status)

    def awaiting_understanding(self) -> Iterator[str]:
        """Yield the ids of all memories that no language model has read yet, in order of their rows."""
        return self._ids(_UNREAD_PAGE)

    def _ids(self, page: str, *parameters: str) -> Iterator[str]:
        rows = [(-1, "")]
        while True:
            with self._translate():
                rows = self._execute(page, (*parameters, rows[-1][0], _PAGE)).fetchall()
            if not rows:
                return
            yield from (memory_id for _, memory_id in rows)

    def ready_places(self) -> dict[VectorLocation, int]:
        """Count the memories with a ready vector by each location that has one of them."""
        counted: Counter[VectorLocation] = Counter()
        with self._translate():
            rows = self._execute(
                "SELECT value, space || ' ' || held, count(*) FROM memories JOIN traits ON traits.id = memories.trait"
                " WHERE space IS NOT NULL GROUP BY trait, space, held"
            )
            for value, spaces, number in rows:
                for space in spaces.split():
                    counted[VectorLocation(mode=Trait.loads(value).kind.mode, space=space)] += number
        return dict(counted)


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

    def numbers_containing(self, partition: int, boundary: str, fragments: Sequence[str]) -> IntArray | None:
        return self._open[partition].reader.numbers_containing(boundary, fragments)

    def with_status(self, partition: int, statuses: Iterable[EmbeddingStatus]) -> Iterator[str]:
        return self._open[partition].reader.with_status(statuses)

    def awaiting_understanding(self, partition: int) -> Iterator[str]:
        return self._open[partition].reader.awaiting_understanding()

    def ready_places(self, partition: int) -> Mapping[VectorLocation, int]:
        return self._open[partition].reader.ready_places()


def _merge(rows: Sequence[tuple[str | None, str | None]]) -> Postings:
    """Merge the postings of several words into those of one: counts of a memory are added, passages united."""
    entries = _numbers([row[0] for row in rows])
    numbers, counts = entries >> COUNT_BITS, entries & COUNT_MASK
    if not bool((np.diff(numbers) > 0).all()):
        unique, inverse = np.unique(numbers, return_inverse=True)
        numbers, counts = unique, np.bincount(inverse, weights=counts).astype(np.int64)
    cut = _numbers([row[1] for row in rows]).reshape(-1, 2)
    if not len(cut):
        return Postings(numbers, counts)
    passages = np.zeros(len(numbers), np.int64)
    np.bitwise_or.at(passages, np.searchsorted(numbers, cut[:, 0] >> COUNT_BITS), cut[:, 1])
    return Postings(numbers, counts, passages)


def _numbers(texts: Iterable[str | None]) -> IntArray:
    return np.fromstring(",".join(filter(None, texts)), np.int64, sep=",")
