"""Tokens and passages that questions of large boundaries have read, in memory: reading takes a third of a question.

Enters: ids of memories, and what is written to the packed store. Leaves: scores of their rows, as the packed store has
them. Guaranteed: a row that was written or removed since is read again; the bytes are bounded.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence

import numpy as np

from schemas.models.vectors import MemoryFilter, Nearest
from schemas.state.modes import VectorSpace
from streams.adapters.vectors.embedded.boundary_vectors import NO_ROW, TokenRows
from streams.adapters.vectors.embedded.maxsim import best_of
from streams.adapters.vectors.embedded.packed_vectors import POINT_PAGE_SIZE, PackedVectors
from streams.adapters.vectors.embedded.text_columns import TextQuestion, TextScores
from streams.adapters.vectors.shared.vector_contract import validate_ids
from streams.batching import batches

MAX_TOKEN_BYTES = 160 * 2**20
"""The limit of the cache: 65,000 short memories. Beyond it, rows of a boundary that go are read again."""

CacheKey = tuple[str, str, str]
"""An index, a collection and a boundary."""


class KeptTokens:
    """Rows by boundary, the boundary that was asked longest ago out first.

    What the indexes of a process share, so that its partitions have one limit. Belongs to one event loop.
    """

    def __init__(self, max_bytes: int = MAX_TOKEN_BYTES) -> None:
        self.boundaries: OrderedDict[CacheKey, TokenRows] = OrderedDict()
        self._max_bytes = max_bytes

    @property
    def size(self) -> int:
        """The bytes of all rows, about."""
        return sum(rows.size for rows in self.boundaries.values())

    def of(self, key: CacheKey, space: VectorSpace) -> TokenRows:
        """Return the rows of a boundary, which is now the one that was asked last."""
        if key not in self.boundaries or self.boundaries[key].needs_compaction:
            self.boundaries[key] = TokenRows(space.fingerprint)
        self.boundaries.move_to_end(key)
        return self.boundaries[key]

    def drop(self, keys: Iterable[CacheKey]) -> None:
        """Drop all rows of some boundaries."""
        for key in list(keys):
            del self.boundaries[key]

    def shrink(self) -> None:
        """Drop rows until the limit is kept: of the boundary that was asked last the older half at a time."""
        while self.size > self._max_bytes:
            key = next(iter(self.boundaries))
            if len(self.boundaries) > 1 or len(self.boundaries[key].rows) < 2:
                self.drop([key])
            else:
                self.boundaries[key] = self.boundaries[key].newer_half()


class TokenCache:
    """The rows of one index."""

    def __init__(self, packed: PackedVectors, kept: KeptTokens | None = None, owner: str = "") -> None:
        """`owner` distinguishes the index from others that share `kept`."""
        self._packed = packed
        self._kept = kept or KeptTokens()
        self._owner = owner

    def scores(
        self, space: VectorSpace, where: MemoryFilter, question: TextQuestion, memory_ids: Sequence[str]
    ) -> tuple[TextScores, list[str]]:
        """Return scores by the places of the ids that the filter admits, and the ids whose vectors are not packed.

        Each id comes once. Raises Unavailable, and ValueError for an id that is no UUID in canonical form.
        """
        rows = self._kept.of((self._owner, space.collection, where.boundary), space)
        found_rows, unpacked = rows.rows_of(memory_ids), list[str]()
        if len(missing := np.flatnonzero(found_rows == NO_ROW)):
            unknown = [memory_ids[number] for number in missing.tolist()]
            unpacked = self._read(space, where.boundary, rows, unknown)
            found_rows[missing] = rows.rows_of(unknown)
        places = np.flatnonzero(found_rows != NO_ROW)
        # In order of rows: they were added in the order of their keys, so neighbours are read together.
        places = places[np.argsort(found_rows[places])]
        scored = rows.scores(question, where, found_rows[places]).at(places)
        if len(missing):
            self._kept.shrink()
        return scored, unpacked

    def forget(self, collection: str, memory_ids: Iterable[str]) -> None:
        """Drop rows that were written or removed."""
        several = [rows for key in self._keys(collection) if (rows := self._kept.boundaries[key]).rows]
        for memory_id in memory_ids if several else ():
            for rows in several:
                rows.remove(memory_id)

    def drop(self, collection: str) -> None:
        """Drop all rows of a collection, after a write with an unknown outcome."""
        self._kept.drop(self._keys(collection))

    def close(self) -> None:
        """Drop all rows of the index."""
        self._kept.drop([key for key in self._kept.boundaries if key[0] == self._owner])

    def _keys(self, collection: str) -> list[CacheKey]:
        return [key for key in self._kept.boundaries if key[:2] == (self._owner, collection)]

    def _read(self, space: VectorSpace, boundary: str, rows: TokenRows, missing: Sequence[str]) -> list[str]:
        """Read rows from the store, where they are found in order; return the ids whose vectors are not packed."""
        ordered = sorted(validate_ids(missing))
        read = dict(zip(ordered, self._packed.rows(space, boundary, ordered), strict=True))
        rows.put_packed({memory_id: row for memory_id, row in read.items() if row})
        return [memory_id for memory_id, row in read.items() if row == b""]


async def score_rows(
    tokens: TokenCache, space: VectorSpace, question: TextQuestion, where: MemoryFilter, memory_ids: Sequence[str]
) -> tuple[Nearest, list[str]]:
    """Score packed texts page by page; also return the ids whose vectors are not packed.

    Each id comes once. The result's rows are places in `memory_ids`.
    """
    pages: list[TextScores] = []
    unpacked: list[str] = []
    for number, page in enumerate(batches(memory_ids, POINT_PAGE_SIZE)):
        scored, missing = tokens.scores(space, where, question, page)
        unpacked += missing
        pages.append(scored.at(number * POINT_PAGE_SIZE + np.arange(len(page))))
        await asyncio.sleep(0)
    joined = TextScores.joined(pages)
    return best_of(memory_ids, joined.rows, joined.scores, len(memory_ids), joined.passages), unpacked
