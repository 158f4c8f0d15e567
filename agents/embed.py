"""The indexer: the only writer of the vector index.

Memories come in as `Remembered`; `encode` makes their vectors, several at the same time; `write` puts a batch of
them into the index, in the order of their arrival, and returns the `Embedded` events that must follow. The index is
durable when `write` returns. The same memory again replaces its point. While the index or the model can't be
reached both raise `Unavailable`, and the caller tries again; a text that the model can't take is `failed`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agents.ports import Clock, Embedder, VectorIndex
from agents.rules.projection import embedding_text
from schemas.events import Embedded
from schemas.failures import Unavailable
from schemas.memories import Memory
from schemas.modes import VectorSpace
from schemas.vectors import Point, Vector

Models = Callable[[str], tuple[Embedder, VectorSpace]]
"""The embedder of a mode and the space that its vectors lie in."""


LONGEST_ERROR = 300
"""Characters of an error that are kept on the record."""


@dataclass(frozen=True, slots=True)
class Vectored:
    """A memory with its vector, or with why it has none."""

    memory: Memory
    partition: int
    space: VectorSpace
    vector: Vector | None
    error: str | None = None


class Embed:
    """`Remembered` in, points written, `Embedded` out."""

    def __init__(self, models: Models, index: VectorIndex, clock: Clock) -> None:
        self._models = models
        self._index = index
        self._clock = clock

    async def encode(self, memory: Memory, partition: int) -> Vectored:
        """Make the vector of a memory in the space of its mode."""
        embedder, space = self._models(memory.mode)
        try:
            encoded = await embedder.passage(embedding_text(memory))
        except Unavailable:
            raise
        except Exception as problem:
            return Vectored(memory, partition, space, None, _explained(problem))
        return Vectored(memory, partition, space, encoded.pooled)

    async def write(self, batch: Sequence[Vectored]) -> list[Embedded]:
        """Write a batch, and say of each memory, in the order of the batch, what became of its vector."""
        written: dict[int, Vectored] = {}
        for space in dict.fromkeys(one.space for one in batch):
            places = [place for place, one in enumerate(batch) if one.space == space]
            upserted = await self._upsert(space, [batch[place] for place in places])
            written |= zip(places, upserted, strict=True)
        return [self._said(written[place]) for place in range(len(batch))]

    async def _upsert(self, space: VectorSpace, batch: list[Vectored]) -> list[Vectored]:
        """Write what has a vector. What the index refuses is `failed`, and costs its neighbours nothing."""
        points = [_point(one, one.vector) for one in batch if one.vector is not None]
        try:
            await self._index.upsert(space, points)
        except Unavailable:
            raise
        except Exception as problem:
            if len(batch) == 1:
                return [replace(batch[0], vector=None, error=_explained(problem))]
            return [each for one in batch for each in await self._upsert(space, [one])]
        return batch

    def _said(self, one: Vectored) -> Embedded:
        return Embedded(
            memory_id=one.memory.memory_id,
            content_hash=one.memory.content_hash,
            status="failed" if one.error else "ready",
            space=one.space.fingerprint.digest,
            at=self._clock.now(),
            error=one.error,
        )


def _explained(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"[:LONGEST_ERROR]


def _point(one: Vectored, vector: Vector) -> Point:
    memory = one.memory
    return Point(
        memory_id=memory.memory_id,
        vector=vector,
        boundary=memory.boundary,
        partition=one.partition,
        scope=memory.scope,
        mode=memory.mode,
        type=memory.type,
        occurred_ms=memory.occurred_ms,
        content_hash=memory.content_hash,
    )
