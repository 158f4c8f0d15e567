"""Memories into one partition's word index: rows, traits and postings.

Every call does all or nothing. When SQLite gives up the whole open transaction, so that earlier calls are undone too,
every later call raises `Unavailable` until the partition is opened again, from the progress that is safe.
"""

import contextlib
import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, Self

from agents.rules.importance import importance
from agents.rules.projection import word_text
from agents.rules.roster import Row
from agents.rules.traits import Trait
from agents.rules.words import terms
from schemas.failures import Unavailable
from schemas.memories import Memory
from streams.adapters.words_file import COUNT_BITS, NUMBER_BITS, NUMBER_MASK, entity_term, translated
from streams.adapters.words_rosters import Rosters

_MOST_COUNTED = (1 << COUNT_BITS) - 1

_WRITE_MEMORY = """
INSERT INTO memories (row, memory_id, trait, occurred_ms, source, length, importance, superseded, space, status,
  digest, terms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (memory_id) DO UPDATE SET trait = excluded.trait, occurred_ms = excluded.occurred_ms,
  source = excluded.source, length = excluded.length, importance = excluded.importance,
  superseded = excluded.superseded, space = excluded.space, status = excluded.status, digest = excluded.digest,
  terms = excluded.terms
"""


class _Spelled(NamedTuple):
    """A memory's words: how many, their terms with repetitions, and the hash of what they were made from."""

    length: int
    digest: bytes
    terms: str

    @classmethod
    def of(cls, memory: Memory, digest: bytes) -> Self:
        words = terms(word_text(memory))
        named = {entity_term(entity) for entity in memory.entities}
        return cls(len(words), digest, "\n".join([*words, *sorted(named)]))

    def entries(self, row: int) -> list[tuple[str, int]]:
        """Term and posting for each different term."""
        number = row & NUMBER_MASK
        counts = Counter(self.terms.split("\n")) if self.terms else {}
        return [(term, number << COUNT_BITS | min(count, _MOST_COUNTED)) for term, count in counts.items()]


class _Stored(NamedTuple):
    """A memory as it stands in the index."""

    row: int
    trait: int
    spelled: _Spelled


class WordsWriter:
    """The writing half of one open index."""

    def __init__(self, connection: sqlite3.Connection, rosters: Rosters) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._rosters = rosters
        self._lost = False

    def commit(self) -> None:
        """Make safe what was written."""
        self._check()
        if self._connection.in_transaction:
            with translated():
                self._execute("COMMIT")

    def set_applied(self, topic: str, next_offset: int) -> None:
        """Note the progress in one topic."""
        with self._changing():
            self._execute("REPLACE INTO progress VALUES (?, ?)", (topic, next_offset))

    def put(self, memory: Memory) -> None:
        """Write a memory over the one before."""
        with self._changing():
            boundary = self._boundary(memory.boundary)
            old = self._stored(memory.memory_id)
            row = self._next_row(boundary) if old is None else old.row
            spelled = self._spell(memory, boundary, row, old)
            trait = Trait.of(memory)
            key = self._join(boundary, trait, old)
            known = Row(
                number=row & NUMBER_MASK,
                memory_id=memory.memory_id,
                trait=key,
                occurred_ms=memory.occurred_ms,
                source=memory.source,
                length=spelled.length,
                importance=importance(memory.importance, memory.text, spelled.length),
                superseded=memory.superseded_by is not None,
                space=memory.embedding.space if memory.embedding.status == "ready" else None,
            )
            self._execute(_WRITE_MEMORY, (row, *known[1:], memory.embedding.status, *spelled[1:]))
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
            self._leave(boundary, old.trait)

    def _stored(self, memory_id: str) -> _Stored | None:
        found = self._execute(
            "SELECT row, trait, length, digest, terms FROM memories WHERE memory_id = ?", (memory_id,)
        ).fetchone()
        return found and _Stored(found[0], found[1], _Spelled(*found[2:]))

    def _boundary(self, name: str) -> int:
        found = self._execute("SELECT id FROM boundaries WHERE name = ?", (name,)).fetchone()
        if found is None:
            found = self._execute("INSERT INTO boundaries (name) VALUES (?) RETURNING id", (name,)).fetchone()
        return int(found[0])

    def _next_row(self, boundary: int) -> int:
        first, after = boundary << NUMBER_BITS, (boundary + 1) << NUMBER_BITS
        last = self._execute(
            "SELECT row FROM memories WHERE row >= ? AND row < ? ORDER BY row DESC LIMIT 1", (first, after)
        ).fetchone()
        return int(last[0]) + 1 if last else first

    def _spell(self, memory: Memory, boundary: int, row: int, old: _Stored | None) -> _Spelled:
        """Write the postings, unless the words are the same as before."""
        text = "\n".join((word_text(memory), *memory.entities))
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()
        if old is not None and old.spelled.digest == digest:
            return old.spelled
        if old is not None:
            self._unspell(boundary, old)
        spelled = _Spelled.of(memory, digest)
        entries = [(boundary, *entry) for entry in spelled.entries(row)]
        self._connection.executemany("INSERT OR IGNORE INTO postings VALUES (?, ?, ?)", entries)
        return spelled

    def _unspell(self, boundary: int, old: _Stored) -> None:
        entries = [(boundary, *entry) for entry in old.spelled.entries(old.row)]
        self._connection.executemany("DELETE FROM postings WHERE boundary = ? AND term = ? AND entry = ?", entries)

    def _join(self, boundary: int, trait: Trait, old: _Stored | None) -> int:
        """Count the memory with its trait, and no longer with the one before."""
        value = trait.dumps()
        found = self._execute("SELECT id FROM traits WHERE boundary = ? AND value = ?", (boundary, value)).fetchone()
        if found and old and found[0] == old.trait:
            return int(found[0])
        key = self._execute(
            "INSERT INTO traits (boundary, value, members) VALUES (?, ?, 1)"
            " ON CONFLICT (boundary, value) DO UPDATE SET members = members + 1 RETURNING id",
            (boundary, value),
        ).fetchone()[0]
        if old:
            self._leave(boundary, old.trait)
        return int(key)

    def _leave(self, boundary: int, trait: int) -> None:
        """Forget a trait with its last member, and a boundary with its last trait."""
        self._rosters.drop(boundary)
        self._execute("UPDATE traits SET members = members - 1 WHERE id = ?", (trait,))
        gone = self._execute("DELETE FROM traits WHERE id = ? AND members <= 0 RETURNING id", (trait,)).fetchall()
        if gone and not self._execute("SELECT 1 FROM traits WHERE boundary = ? LIMIT 1", (boundary,)).fetchone():
            self._execute("DELETE FROM boundaries WHERE id = ?", (boundary,))

    def _check(self) -> None:
        if self._lost:
            raise Unavailable("the word index lost what was not committed; open the partition again")

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """One call's writes, all of them or none."""
        self._check()
        with translated():
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
        self._lost = not self._connection.in_transaction
        if not self._lost:
            self._execute("ROLLBACK TO call")
            self._execute("RELEASE call")
