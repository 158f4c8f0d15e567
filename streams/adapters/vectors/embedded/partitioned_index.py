"""The embedded vector index by partition: each has a root of its own, which one process at a time owns.

Enters: partitions that this process holds. Leaves: their indexes, opened at the first use. Guaranteed: all of them
together have as many open collections, and as many vectors in memory, as one index would have; a partition that is
released is flushed and closed, and its next owner finds everything.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from streams.adapters.vectors.embedded.edge_index import EdgeIndex
from streams.adapters.vectors.embedded.edge_resources import EdgeResources


class PartitionedIndex:
    """Implements `agents.ports.vector_index.VectorIndexes` on Qdrant Edge."""

    def __init__(
        self, root: Path, resources: EdgeResources | None = None, is_held: Callable[[int], bool] = lambda _: True
    ) -> None:
        """`is_held` tells whether a partition is this process's own: no other one is opened."""
        self._root = root
        self._resources = resources or EdgeResources()
        self._is_held = is_held
        self._open: dict[int, EdgeIndex] = {}
        self._on_lost: Callable[[], object] = lambda: None

    def at(self, partition: int) -> EdgeIndex:
        if (known := self._open.get(partition)) is not None:
            return known
        if not self._is_held(partition):
            raise KeyError(partition)
        opened = EdgeIndex(partition_root(self._root, partition), self._resources)
        opened.watch_losses(self._lost)
        self._open[partition] = opened
        return opened

    def problem(self) -> str | None:
        return next((found for one in self._open.values() if (found := one.problem()) is not None), None)

    def set_aside(self) -> Sequence[str]:
        return sorted({name for one in self._open.values() for name in one.set_aside()})

    def _lost(self) -> None:
        self._on_lost()

    def watch_losses(self, on_lost: Callable[[], object]) -> None:
        self._on_lost = on_lost

    async def release(self, partition: int) -> None:
        if (known := self._open.pop(partition, None)) is not None:
            await known.close()

    async def close(self) -> None:
        for partition in list(self._open):
            await self.release(partition)


def partition_root(root: Path, partition: int) -> Path:
    """Return the directory of a partition's vectors."""
    return root / str(partition)
