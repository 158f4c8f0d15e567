"""Token vectors that questions of large boundaries have read, in memory: reading them takes a third of a question.

Enters: ids of memories, and what is written to the packed store. Leaves: their rows, as the packed store has them.
Guaranteed: a row that was written or removed since is read again; the bytes are bounded.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from schemas.models.vectors import MemoryFilter
from schemas.state.modes import VectorSpace
from streams.adapters.vectors.embedded.packed_tokens import TokenRow, TokenRows, stack_tokens, token_row
from streams.adapters.vectors.embedded.packed_vectors import PackedVectors
from streams.adapters.vectors.shared.vector_contract import validate_ids

MAX_TOKEN_BYTES = 96 * 2**20
"""The limit of the cache: 60,000 short memories."""

ROW_OVERHEAD_BYTES = 250
"""Of one row: the objects around its bytes, and its id."""


class KeptTokens:
    """Rows by index, collection and boundary, the boundary that was asked longest ago out first.

    What the indexes of a process share, so that its partitions have one limit. Belongs to one event loop.
    """

    def __init__(self, max_bytes: int = MAX_TOKEN_BYTES) -> None:
        self.boundaries: OrderedDict[tuple[str, str, str], dict[str, TokenRow]] = OrderedDict()
        self.size = 0
        """The bytes of all rows, about."""
        self._max_bytes = max_bytes

    def of(self, key: tuple[str, str, str]) -> dict[str, TokenRow]:
        """Return the rows of a boundary, which is now the one that was asked last."""
        rows = self.boundaries.setdefault(key, {})
        self.boundaries.move_to_end(key)
        return rows

    def drop(self, keys: Iterable[tuple[str, str, str]]) -> None:
        """Drop all rows of some boundaries."""
        for key in list(keys):
            self.size -= sum(map(_size, self.boundaries.pop(key).values()))

    def shrink(self) -> None:
        """Drop rows until the limit is kept."""
        while self.size > self._max_bytes:
            key = next(iter(self.boundaries))
            rows = self.boundaries[key]
            if len(self.boundaries) > 1 or not rows:
                self.drop([key])
            else:
                self.size -= _size(rows.pop(next(iter(rows))))


class TokenCache:
    """The rows of one index."""

    def __init__(self, packed: PackedVectors, kept: KeptTokens | None = None, owner: str = "") -> None:
        """`owner` distinguishes the index from others that share `kept`."""
        self._packed = packed
        self._kept = kept or KeptTokens()
        self._owner = owner

    def read(self, space: VectorSpace, where: MemoryFilter, memory_ids: Sequence[str]) -> tuple[TokenRows, list[str]]:
        """Return the tokens of the memories that the filter admits, and the ids whose vectors are not packed.

        Raises Unavailable, and ValueError for an id that is no UUID in canonical form.
        """
        rows = self._kept.of((self._owner, space.collection, where.boundary))
        unpacked = self._read_missing(space, where.boundary, rows, [one for one in memory_ids if one not in rows])
        known = {one: rows[one] for one in memory_ids if one in rows}
        self._kept.shrink()
        return stack_tokens(space.fingerprint, where, known), unpacked

    def forget(self, collection: str, memory_ids: Iterable[str]) -> None:
        """Drop rows that were written or removed."""
        several = [rows for key in self._keys(collection) if (rows := self._kept.boundaries[key])]
        for memory_id in memory_ids if several else ():
            for rows in several:
                if (row := rows.pop(memory_id, None)) is not None:
                    self._kept.size -= _size(row)

    def drop(self, collection: str) -> None:
        """Drop all rows of a collection, after a write with an unknown outcome."""
        self._kept.drop(self._keys(collection))

    def close(self) -> None:
        """Drop all rows of the index."""
        self._kept.drop(key for key in list(self._kept.boundaries) if key[0] == self._owner)

    def _keys(self, collection: str) -> list[tuple[str, str, str]]:
        return [key for key in self._kept.boundaries if key[:2] == (self._owner, collection)]

    def _read_missing(
        self, space: VectorSpace, boundary: str, rows: dict[str, TokenRow], missing: Sequence[str]
    ) -> list[str]:
        """Read rows from the store, where they are found in order; return the ids whose vectors are not packed."""
        ordered, unpacked, kinds = sorted(validate_ids(missing)), list[str](), dict[bytes, bytes]()
        for memory_id, row in zip(ordered, self._packed.rows(space, boundary, ordered), strict=True):
            if row:
                rows[memory_id] = known = token_row(space.fingerprint, row, kinds)
                self._kept.size += _size(known)
            elif row is not None:
                unpacked.append(memory_id)
        return unpacked


def _size(row: TokenRow) -> int:
    return len(row.tokens) + ROW_OVERHEAD_BYTES
