"""Caches the ids of boundaries and traits in one lexical index.

Most reads and writes are about the same few. The cache is cleared whenever an id may have become invalid.
"""

import sqlite3

MAX_CACHED_KEYS = 4096
"""Cached ids: under a megabyte."""

KeyName = str | tuple[int, str]
"""A boundary's name, or a boundary's id and a trait as text."""

_BOUNDARY = "SELECT id FROM boundaries WHERE name = ?"
_TRAIT = "SELECT id FROM traits WHERE boundary = ? AND value = ?"


class KeyCache:
    """The ids of one open index."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._execute = connection.execute
        self._cached: dict[KeyName, int] = {}

    def boundary(self, name: str) -> int | None:
        """Return the id of a boundary, None if it is unknown."""
        return self._id(name, _BOUNDARY, (name,))

    def trait(self, boundary: int, value: str) -> int | None:
        """Return the id of a trait, None if it is unknown."""
        return self._id((boundary, value), _TRAIT, (boundary, value))

    def clear(self) -> None:
        """Clear the cache, after a deletion or a rollback."""
        self._cached.clear()

    def _id(self, name: KeyName, statement: str, arguments: tuple[object, ...]) -> int | None:
        key = self._cached.get(name)
        if key is None and (found := self._execute(statement, arguments).fetchone()):
            if len(self._cached) == MAX_CACHED_KEYS:
                self._cached.clear()
            key = self._cached[name] = int(found[0])
        return key
