"""Read the pooled vectors of a boundary with many memories while others are served, and while it is written to.

Enters: the stores of one collection, and what is written to the boundary meanwhile. Leaves: its vectors as the engine
has them, with every one of these writes.
"""

from collections.abc import Iterable, Sequence

from schemas.models.vectors import Point
from schemas.state.modes import VectorSpace
from streams.adapters.vectors.embedded.boundary_reads import Pause, point_ids
from streams.adapters.vectors.embedded.edge_requests import point_query
from streams.adapters.vectors.embedded.edge_shard import CollectionShard
from streams.adapters.vectors.embedded.packed_vectors import PackedVectors
from streams.adapters.vectors.embedded.quantised_vectors import PooledRow, QuantisedVectors
from streams.adapters.vectors.shared.vector_contract import POINT_BATCH_SIZE, VECTOR_BATCH_SIZE
from streams.batching import batches


class QuantisedRead:
    """One read. Between two pauses it reads and applies some rows, so that no write comes in between."""

    def __init__(self, space: VectorSpace, boundary: str, max_points: int) -> None:
        self._space = space
        self._boundary = boundary
        self._max_points = max_points
        self._vectors = QuantisedVectors(space.fingerprint)
        self._written: set[str] = set()
        """Memories that were written or removed since the read began: what the read finds of them is outdated."""

    def written(self, points: Iterable[Point]) -> None:
        """Apply points that were written to the collection."""
        for point in points:
            self.removed([point.memory_id])
            if point.boundary == self._boundary:
                self._vectors.put([PooledRow.of(point)])

    def removed(self, memory_ids: Iterable[str]) -> None:
        """Apply a deletion."""
        for memory_id in memory_ids:
            self._written.add(memory_id)
            self._vectors.remove(memory_id)

    async def all_points(self, shard: CollectionShard, packed: PackedVectors, pause: Pause) -> QuantisedVectors:
        """Read all points as the engine has them, packed rows for speed. Raises TooManyPoints."""
        missing = await point_ids(shard, self._boundary, self._max_points, pause)
        for page in batches(packed.of(self._space, self._boundary), POINT_BATCH_SIZE):
            found = [
                PooledRow(row.memory_id, row.kind, row.occurred_ms, row.vectors.pooled)
                for memory_id, row in page
                if row is not None and memory_id in missing
            ]
            missing.difference_update(row.memory_id for row in found)
            self._take(found)
            await pause()
        for memory_ids in batches(sorted(missing), VECTOR_BATCH_SIZE):
            points = shard.ask(point_query(self._space.fingerprint, memory_ids))
            self._take([PooledRow.of(point) for point in points])
            await pause()
        return self._vectors

    def _take(self, rows: Sequence[PooledRow]) -> None:
        """Add what was read, but not what was written since."""
        if current := [row for row in rows if row.memory_id not in self._written]:
            self._vectors.put(current)
