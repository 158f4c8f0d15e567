"""Memories into one partition's word index: rows, traits and postings.

Every call does all or nothing. When SQLite gives up the whole open transaction, so that earlier calls are undone too,
every later call raises `Unavailable` until the partition is opened again, from the progress that is safe.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from agents.rules.index.lexical_document import LexicalDocument
from agents.rules.index.memory_columns import MemoryRow
from agents.rules.index.traits import Trait
from schemas.failures import Unavailable
from streams.adapters.lexical.columns_cache import MemoryColumnsCache
from streams.adapters.lexical.file import NUMBER_BITS, NUMBER_MASK, translate_sqlite_errors
from streams.adapters.lexical.keys import KeyCache
from streams.adapters.lexical.text_analysis import AnalyzedText

_WRITE_MEMORY = """
INSERT INTO memories (row, memory_id, trait, occurred_ms, source, length, importance, superseded, space, status,
  unread, language, marks, digest, terms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (memory_id) DO UPDATE SET trait = excluded.trait, occurred_ms = excluded.occurred_ms,
  source = excluded.source, length = excluded.length, importance = excluded.importance,
  superseded = excluded.superseded, space = excluded.space, status = excluded.status, unread = excluded.unread,
  language = excluded.language, marks = excluded.marks, digest = excluded.digest, terms = excluded.terms
"""


class _Stored(NamedTuple):
    """A memory as it stands in the index."""

    row: int
    trait: int
    analyzed: AnalyzedText


class LexicalWriter:
    """The writing half of one open index."""

    def __init__(self, connection: sqlite3.Connection, rosters: MemoryColumnsCache, keys: KeyCache) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._rosters = rosters
        self._keys = keys
        self._lost = False
        self.progress: dict[str, int] = {}
        """What `set_applied` has noted since the last commit, which writes it: once for many records."""

    def commit(self) -> None:
        """Make safe what was written, with the progress."""
        self._check()
        if self.progress:
            with self._changing():
                self._connection.executemany("REPLACE INTO progress VALUES (?, ?)", self.progress.items())
        if not self._connection.in_transaction:
            return
        try:
            with translate_sqlite_errors():
                self._execute("COMMIT")
            self.progress.clear()
        except Unavailable:
            self._lost = not self._connection.in_transaction
            raise

    def set_applied(self, topic: str, next_offset: int) -> None:
        """Note the progress in one topic."""
        self._check()
        self.progress[topic] = next_offset

    def put(self, document: LexicalDocument) -> None:
        """Write a memory; replaces the previous version."""
        memory, trait = document.memory, document.trait
        with self._changing():
            boundary = self._boundary(memory.index_name)
            old = self._stored(memory.memory_id)
            row = self._next_row(boundary) if old is None else old.row
            spelled = self._spell(document, boundary, row, old)
            known = _known(document, row, self._join(boundary, trait, old), spelled)
            statuses = (memory.embedding.status, document.awaits_understanding)
            # In the order of the columns: a roster's row from id to space, the statuses, how its words are spelled.
            self._execute(_WRITE_MEMORY, (row, *known[1:9], *statuses, *spelled[1:]))
            self._rosters.written(boundary, known, trait)

    def remove(self, memory_id: str) -> None:
        """Forget a memory, its words, and what it alone had."""
        with self._changing():
            old = self._stored(memory_id)
            if old is None:
                return
            boundary = old.row >> NUMBER_BITS
            self._unspell(boundary, old)
            self._execute("DELETE FROM memories WHERE row = ?", (old.row,))
            self._rosters.drop(boundary)
            self._leave(boundary, old.trait)

    def _stored(self, memory_id: str) -> _Stored | None:
        found = self._execute(
            "SELECT row, trait, length, language, marks, digest, terms FROM memories WHERE memory_id = ?", (memory_id,)
        ).fetchone()
        return found and _Stored(found[0], found[1], AnalyzedText(*found[2:]))

    def _boundary(self, name: str) -> int:
        key = self._keys.boundary(name)
        if key is None:
            [key] = self._execute("INSERT INTO boundaries (name) VALUES (?) RETURNING id", (name,)).fetchone()
        return key

    def _next_row(self, boundary: int) -> int:
        first, after = boundary << NUMBER_BITS, (boundary + 1) << NUMBER_BITS
        last = self._execute(
            "SELECT row FROM memories WHERE row >= ? AND row < ? ORDER BY row DESC LIMIT 1", (first, after)
        ).fetchone()
        return int(last[0]) + 1 if last else first

    def _spell(self, document: LexicalDocument, boundary: int, row: int, old: _Stored | None) -> AnalyzedText:
        """Write the postings, unless the words are the same as before."""
        before = old.analyzed if old else None
        spelled = AnalyzedText.of(document, before)
        if spelled is not before:
            if old is not None:
                self._unspell(boundary, old)
            self._rosters.add_terms(boundary, spelled.words)
            entries = [(boundary, *posting) for posting in spelled.postings(row & NUMBER_MASK)]
            self._connection.executemany("INSERT OR IGNORE INTO postings VALUES (?, ?, ?)", entries)
        return spelled

    def _unspell(self, boundary: int, old: _Stored) -> None:
        self._rosters.invalidate(boundary)
        entries = [(boundary, *posting) for posting in old.analyzed.postings(old.row & NUMBER_MASK)]
        self._connection.executemany("DELETE FROM postings WHERE boundary = ? AND term = ? AND entry = ?", entries)

    def _join(self, boundary: int, trait: Trait, old: _Stored | None) -> int:
        """Count the memory with its trait, and no longer with the one before."""
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
            self._leave(boundary, old.trait)
        return int(key)

    def _leave(self, boundary: int, trait: int) -> None:
        """Forget a trait with its last member, and a boundary with its last trait."""
        self._execute("UPDATE traits SET members = members - 1 WHERE id = ?", (trait,))
        gone = self._execute("DELETE FROM traits WHERE id = ? AND members <= 0 RETURNING id", (trait,)).fetchall()
        if gone:
            self._keys.forget()
        if gone and not self._execute("SELECT 1 FROM traits WHERE boundary = ? LIMIT 1", (boundary,)).fetchone():
            self._execute("DELETE FROM boundaries WHERE id = ?", (boundary,))

    def _check(self) -> None:
        if self._lost:
            raise Unavailable("the word index lost what was not committed; open the partition again")

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """One call's writes, all of them or none."""
        self._check()
        with translate_sqlite_errors():
            if not self._connection.in_transaction:
                self._execute("BEGIN")
            self._execute("SAVEPOINT call")
            try:
                yield
            except BaseException:
                self._undo()
                raise
            self._execute("RELEASE call")

    def _undo(self) -> None:
        self._rosters.clear()
        self._keys.forget()
        self._lost = not self._connection.in_transaction
        if not self._lost:
            self._execute("ROLLBACK TO call")
            self._execute("RELEASE call")


def _known(document: LexicalDocument, row: int, trait: int, spelled: AnalyzedText) -> MemoryRow:
    """Return the columns of a memory."""
    memory = document.memory
    return MemoryRow(
        number=row & NUMBER_MASK,
        memory_id=memory.memory_id,
        trait=trait,
        occurred_ms=memory.occurred_ms,
        source=memory.source,
        length=spelled.length,
        importance=document.importance(spelled.length),
        superseded=document.is_superseded,
        space=memory.embedding.space,
        language=spelled.language,
        labels=spelled.marks,
    )
