"""Reads of boundaries with many memories, beside questions, which the engine answers until a read is complete.

Guaranteed: what a read leaves has every write that came before; after `close` none goes on.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence

import structlog

from schemas.failures import Unavailable
from schemas.models.vectors import Point
from schemas.state.modes import VectorSpace
from streams.adapters.vectors.embedded.boundary_reads import TooManyPoints
from streams.adapters.vectors.embedded.paced_opening import PacedOpening, UntilQuiet
from streams.adapters.vectors.embedded.packed_vectors import PackedVectors
from streams.adapters.vectors.embedded.quantised_reads import QuantisedRead
from streams.adapters.vectors.embedded.quantised_vectors import QuantisedVectors

Keep = Callable[[VectorSpace, str, QuantisedVectors | None], None]
"""Takes the vectors of a boundary, None if there are too many. Raises KeyError after the partition has left."""

ReadKey = tuple[str, str]
"""A collection and a boundary."""

MAX_PAUSE_S = 0.05
"""The longest pause after each page for requests under way: under a constant load 50,000 memories take 10 s."""

log = structlog.get_logger()


class BackgroundReads:
    """The reads of one index, one after the other."""

    def __init__(
        self, packed: PackedVectors, opening: PacedOpening, max_points: int, keep: Keep, until_quiet: UntilQuiet
    ) -> None:
        self._packed = packed
        self._opening = opening
        self._max_points = max_points
        self._keep = keep
        self._until_quiet = until_quiet
        self._reads: dict[ReadKey, tuple[QuantisedRead, asyncio.Task[None]]] = {}
        self._turn = asyncio.Lock()

    def has(self, space: VectorSpace, boundary: str) -> bool:
        """True if a read of this boundary has begun and is not complete."""
        return (space.collection, boundary) in self._reads

    def begin(self, space: VectorSpace, boundary: str) -> None:
        """Begin to read a boundary that is not being read."""
        read = QuantisedRead(space, boundary, self._max_points)
        task = asyncio.create_task(self._run(read, space, boundary))
        self._reads[space.collection, boundary] = read, task

    def written(self, space: VectorSpace, points: Sequence[Point]) -> None:
        """Apply points that were written."""
        for read in self._of(space.collection):
            read.written(points)

    def removed(self, space: VectorSpace, memory_ids: Sequence[str]) -> None:
        """Apply a deletion."""
        for read in self._of(space.collection):
            read.removed(memory_ids)

    def cancel(self, collection: str) -> None:
        """End the reads of a collection, after a write with an unknown outcome."""
        for key in [key for key in self._reads if key[0] == collection]:
            _, task = self._reads.pop(key)
            task.cancel()

    async def until_done(self) -> None:
        """Wait for all reads."""
        await asyncio.gather(*(task for _, task in self._reads.values()), return_exceptions=True)

    async def close(self) -> None:
        """End all reads."""
        tasks = [task for _, task in self._reads.values()]
        self._reads.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _of(self, collection: str) -> Iterator[QuantisedRead]:
        return (read for key, (read, _) in self._reads.items() if key[0] == collection)

    async def _run(self, read: QuantisedRead, space: VectorSpace, boundary: str) -> None:
        key = space.collection, boundary
        try:
            async with self._turn:
                vectors = await self._read(read, space)
            self._keep(space, boundary, vectors)
        except (Unavailable, KeyError) as problem:
            # The engine answers; the next question begins anew.
            log.info("vectors were not read into memory", collection=space.collection, problem=str(problem))
        finally:
            # Unless it was ended, and perhaps begun again.
            if key in self._reads and self._reads[key][0] is read:
                del self._reads[key]

    async def _read(self, read: QuantisedRead, space: VectorSpace) -> QuantisedVectors | None:
        if (shard := await self._opening.readable(space)) is None:
            raise KeyError(space.collection)
        with shard.in_use():
            try:
                return await read.all_points(shard, self._packed, self._give_way)
            except TooManyPoints:
                return None

    async def _give_way(self) -> None:
        await asyncio.sleep(0)
        await self._until_quiet(MAX_PAUSE_S)
