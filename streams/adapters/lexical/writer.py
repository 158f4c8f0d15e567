"""Writes memories to one partition's lexical index: rows, traits and postings. Every call is atomic."""

from itertools import chain
from typing import NamedTuple

from agents.rules.index.lexical_document import LexicalDocument
from agents.rules.index.memory_columns import MemoryRow, Trait, keys_of
from schemas.moments import milliseconds_of
from streams.adapters.lexical.columns_cache import MemoryColumnsCache
from streams.adapters.lexical.file import NUMBER_BITS, NUMBER_MASK, KeyCache
from streams.adapters.lexical.text_analysis import AnalyzedText, postings_of
from streams.partition.database import PartitionDatabase

_WRITE_MEMORY = """
INSERT INTO memories (row, memory_id, trait, occurred_ms, source, length, importance, superseded, space, held,
  status, unread, keys, accepted_ms, superseded_ms, language, marks, digest, terms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (memory_id) DO UPDATE SET trait = excluded.trait, occurred_ms = excluded.occurred_ms,
  source = excluded.source, length = excluded.length, importance = excluded.importance,
  superseded = excluded.superseded, space = excluded.space, held = excluded.held, status = excluded.status,
  unread = excluded.unread, keys = excluded.keys, accepted_ms = excluded.accepted_ms,
  superseded_ms = excluded.superseded_ms,
  language = excluded.language, marks = excluded.marks, digest = excluded.digest, terms = excluded.terms
"""


_NAME = "SELECT name FROM boundaries WHERE id = ?"


class _Stored(NamedTuple):
    row: int
    trait: int
    analyzed: AnalyzedText


class PartitionWriter:
    """The write side of one open index."""

    def __init__(self, database: PartitionDatabase, cache: MemoryColumnsCache, keys: KeyCache) -> None:
        self._connection = database.connection
        self._execute = database.execute
        self._savepoint = database.savepoint
        self._cache = cache
        self._keys = keys
        database.on_rollback, database.on_commit = self._rolled_back, self._note_commit
        self._written: set[str] = set()
        self._committed: set[str] = set()

    def take_changed(self) -> set[str]:
        taken, self._committed = self._committed, set()
        return taken

    def put(self, document: LexicalDocument) -> None:
        memory, trait = document.memory, document.trait
        with self._savepoint():
            boundary = self._keys.boundary(memory.index_name)
            if boundary is None:
                [boundary] = self._execute(
                    "INSERT INTO boundaries (name) VALUES (?) RETURNING id", (memory.index_name,)
                ).fetchone()
            self._written.add(memory.index_name)
            old = self._stored_in(boundary, memory.memory_id)
            row = self._next_row(boundary) if old is None else old.row
            analyzed = self._write_terms(document, boundary, row, old)
            memory = document.memory
            columns = MemoryRow(
                number=row & NUMBER_MASK,
                memory_id=memory.memory_id,
                trait=self._join_trait(boundary, trait, old),
                occurred_ms=memory.occurred_ms,
                source=memory.source,
                length=analyzed.length,
                importance=document.importance(analyzed.length),
                superseded=document.is_superseded,
                space=memory.embedding.space,
                language=analyzed.language,
                labels=analyzed.marks,
                held=" ".join(memory.embedding.searchable_beside),
                keys=keys_of(memory),
                accepted_ms=milliseconds_of(memory.accepted_at),
                superseded_ms=milliseconds_of(memory.superseded_at) if memory.superseded_at else 0,
            )
            statuses = (memory.embedding.status, document.awaits_understanding)
            # In the order of the statement: from the id to the spaces, the statuses, keys and times, the analysed text.
            self._execute(_WRITE_MEMORY, (row, *columns[1:9], columns.held, *statuses, *columns[12:], *analyzed[1:]))
            self._cache.written(boundary, columns, trait)

    def remove(self, memory_id: str) -> None:
        """Remove a memory with its terms, and its trait and boundary if they become empty."""
        with self._savepoint():
            old = self._stored(memory_id)
            if old is not None:
                self._delete(old)

    def _note_commit(self) -> None:
        self._committed |= self._written
        self._written.clear()

    def _rolled_back(self) -> None:
        self._cache.clear()
        self._keys.clear()

    def _delete(self, old: _Stored) -> None:
        boundary = old.row >> NUMBER_BITS
        self._written.update(chain.from_iterable(self._execute(_NAME, (boundary,))))
        self._delete_terms(boundary, old)
        self._execute("DELETE FROM memories WHERE row = ?", (old.row,))
        self._cache.drop(boundary)
        self._leave_trait(boundary, old.trait)

    def _stored_in(self, boundary: int, memory_id: str) -> _Stored | None:
        """Return the stored row of a memory; remove it from another index, which it has left."""
        old = self._stored(memory_id)
        if old is not None and old.row >> NUMBER_BITS != boundary:
            self._delete(old)
            return None
        return old

    def _stored(self, memory_id: str) -> _Stored | None:
        found = self._execute(
            "SELECT row, trait, length, language, marks, digest, terms FROM memories WHERE memory_id = ?", (memory_id,)
        ).fetchone()
        return found and _Stored(found[0], found[1], AnalyzedText(*found[2:]))

    def _next_row(self, boundary: int) -> int:
        first, after = boundary << NUMBER_BITS, (boundary + 1) << NUMBER_BITS
        last = self._execute(
            "SELECT row FROM memories WHERE row >= ? AND row < ? ORDER BY row DESC LIMIT 1", (first, after)
        ).fetchone()
        return int(last[0]) + 1 if last else first

    def _write_terms(self, document: LexicalDocument, boundary: int, row: int, old: _Stored | None) -> AnalyzedText:
        """Write the postings, unless the analysed text is unchanged."""
        before = old.analyzed if old else None
        analyzed = AnalyzedText.of(document, before)
        if analyzed is not before:
            if old is not None:
                self._delete_terms(boundary, old)
            self._cache.add_terms(boundary, document.analysis.counts)
            # In the order of the table, so that neighbours share a page.
            entries = sorted((boundary, *posting) for posting in postings_of(document, row & NUMBER_MASK))
            self._connection.executemany("INSERT OR IGNORE INTO postings VALUES (?, ?, ?, ?)", entries)
        return analyzed

    def _delete_terms(self, boundary: int, old: _Stored) -> None:
        self._cache.drop_vocabulary(boundary)
        entries = [(boundary, *posting) for posting in old.analyzed.entries(old.row & NUMBER_MASK)]
        self._connection.executemany("DELETE FROM postings WHERE boundary = ? AND term = ? AND entry = ?", entries)

    def _join_trait(self, boundary: int, trait: Trait, old: _Stored | None) -> int:
        """Count the memory as a member of its trait, and no longer of its former one."""
        value = trait.dumps()
        key = self._keys.trait(boundary, value)
        if key is not None and old and key == old.trait:
            return key
        [key] = self._execute(
            "INSERT INTO traits (boundary, value, members) VALUES (?, ?, 1)"
            " ON CONFLICT (boundary, value) DO UPDATE SET members = members + 1 RETURNING id",
            (boundary, value),
        ).fetchone()
        if old:
            self._leave_trait(boundary, old.trait)
        return int(key)

    def _leave_trait(self, boundary: int, trait: int) -> None:
        """Remove a member; delete a trait with its last member, and a boundary with its last trait."""
        self._execute("UPDATE traits SET members = members - 1 WHERE id = ?", (trait,))
        deleted = self._execute("DELETE FROM traits WHERE id = ? AND members <= 0 RETURNING id", (trait,)).fetchall()
        if deleted:
            self._keys.clear()
        if deleted and not self._execute("SELECT 1 FROM traits WHERE boundary = ? LIMIT 1", (boundary,)).fetchone():
            self._execute("DELETE FROM boundaries WHERE id = ?", (boundary,))
