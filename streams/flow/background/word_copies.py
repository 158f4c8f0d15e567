"""The lexical index of partitions that another worker serves, kept up with the copies of their table of memories."""

import asyncio
from collections.abc import Callable, Mapping
from time import perf_counter

from agents.rules.index.lexical_document import LexicalDocument
from schemas.state.memories import Memory
from streams.flow.stores.tables import LexicalStore
from streams.foreground import Foreground

SLICE_S = 0.004
"""Seconds of writing at a stretch, before requests come first."""


class WordCopies:
    """Rows of memories in, their words written. The position is durable together with the words before it."""

    def __init__(
        self,
        words: LexicalStore,
        changelog: str,
        read_row: Callable[[bytes], Memory | None],
        foreground: Foreground | None = None,
    ) -> None:
        """`changelog` names the position; `read_row` returns the memory of a row, None for a tombstone."""
        self._words = words
        self._changelog = changelog
        self._read_row = read_row
        self._foreground = foreground or Foreground()
        self._served: set[int] = set()
        """Partitions whose index has all words of their table, as this worker serves them."""

    def leave(self, partition: int, position: int | None) -> None:
        """Note that a partition is no longer served; with `position`, that its index has the words before it."""
        if partition in self._served and position is not None:
            self._words.set_applied(partition, self._changelog, position)
            self._words.commit(partition)
        self._served.discard(partition)

    def open(self, partition: int) -> None:
        """Begin to keep a copy."""
        self._words.open(partition)

    def serve(self, partition: int, *, is_complete: bool) -> None:
        """Note that the partition is served from now on, and whether its index has all words."""
        (self._served.add if is_complete else self._served.discard)(partition)

    def has_position(self, partition: int) -> bool:
        """True if an open index was a copy before."""
        return self._changelog in self._words.applied(partition)

    def position(self, partition: int) -> int:
        """Return the offset to read from."""
        return self._words.applied(partition).get(self._changelog, 0)

    async def apply(self, partition: int, rows: Mapping[bytes, bytes | None], position: int) -> None:
        """Write the words of rows before `position`, and make both durable."""
        began = perf_counter()
        for key, value in rows.items():
            memory = None if value is None else self._read_row(value)
            if memory is None:
                self._words.remove(partition, key.decode())
            else:
                self._words.put(partition, LexicalDocument(memory))
            if (worked := perf_counter() - began) > SLICE_S:
                await self._foreground.give_way(worked)
                began = perf_counter()
        self._words.set_applied(partition, self._changelog, position)
        self._words.commit(partition)
        self._words.rotate_unfinished(partition)
        await asyncio.sleep(0)

    def close(self, partition: int) -> None:
        """Close the index: where it is served from now on, it is neither read nor written before it has all words."""
        self._words.release(partition)
