"""Numbers of boundaries and traits in one word index, remembered between statements.

Most reads and writes are about the same few. What is remembered is forgotten as soon as a number may stand for nothing.
"""

import sqlite3

MAX_CACHED_KEYS = 4096
"""Numbers that are kept in memory: under a megabyte."""

KeyName = str | tuple[int, str]
"""A boundary's name; a boundary's number and a trait as text."""

_BOUNDARY = "SELECT id FROM boundaries WHERE name = ?"
_TRAIT = "SELECT id FROM traits WHERE boundary = ? AND value = ?"


class KeyCache:
    """The numbers of one open index."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._execute = connection.execute
        self._kept: dict[KeyName, int] = {}

    def boundary(self, name: str) -> int | None:
        """The number of a boundary that is there."""
        return self._number(name, _BOUNDARY, (name,))

    def trait(self, boundary: int, value: str) -> int | None:
        """The number of a trait that is there."""
        return self._number((boundary, value), _TRAIT, (boundary, value))

    def forget(self) -> None:
        """Look at the index again: something left it, or was undone."""
        self._kept.clear()

    def _number(self, name: KeyName, question: str, arguments: tuple[object, ...]) -> int | None:
        number = self._kept.get(name)
        if number is None and (found := self._execute(question, arguments).fetchone()):
            if len(self._kept) == MAX_CACHED_KEYS:
                self._kept.clear()
            number = self._kept[name] = int(found[0])
        return number
