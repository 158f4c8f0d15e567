"""The indexer: the only writer of the vector index.

Memories come in as `Remembered`, in the order in which they changed; `encode` makes their vectors, several at the same
time; `write` puts a batch of them into the index, empties the places where they no longer belong, and returns the
`Embedded` events that must follow. The index is durable when `write` returns. The same memory again replaces its
point. While the index or the model's process can't be reached both raise `Unavailable`, and the caller tries again; a
text that the model can't take is `failed`; a memory whose mode's model is not loaded is `waiting`, and delays nobody.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agents.categories.matching import CategoryMatcher
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.clock import Clock
from agents.ports.embedder import Embedder
from agents.ports.vector_index import VectorIndex
from agents.rules.memory.embedding_status import written_location
from agents.rules.text.embedding_text import embedding_text
from schemas.events import Embedded, Forgotten, Remembered
from schemas.failures import ModelMissing, Rejected, Unavailable
from schemas.memories import CategoryAssignment, Memory, VectorLocation
from schemas.modes import Fingerprint, VectorSpace, collection_name
from schemas.vectors import Encoded, Matrix, Point, Vector

MAX_ERROR_CHARS = 300
"""Characters of an error that are kept on the record."""


@dataclass(frozen=True, slots=True)
class EncodedMemory:
    """A memory with its vectors and the space they lie in, or with why it has none, and the places to be emptied.

    Without a memory: one that is forgotten.
    """

    memory_id: str
    strays: frozenset[VectorLocation]
    memory: Memory | None = None
    partition: int = 0
    space: VectorSpace | None = None
    vector: Vector | None = None
    tokens: Matrix | None = None
    error: str | None = None

    @property
    def place(self) -> VectorLocation | None:
        """Where the vector belongs."""
        if self.space is None or self.vector is None:
            return None
        return VectorLocation(mode=self.space.mode, space=self.space.fingerprint.digest)


class Embed:
    """`Remembered` and `Forgotten` in, points written and removed, `Embedded` out."""

    def __init__(
        self,
        spaces_at: Callable[[int], VectorSpaces],
        index: VectorIndex,
        clock: Clock,
        matcher_at: Callable[[int], CategoryMatcher] | None = None,
    ) -> None:
        """Take the ports; `spaces_at` and `matcher_at` give those of a partition, as one batch is of several.

        The matcher assigns categories; None disables assignment.
        """
        self._matcher_at = matcher_at
        self._spaces_at = spaces_at
        self._index = index
        self._clock = clock

    async def encode(self, event: Remembered | Forgotten, partition: int) -> EncodedMemory:
        """Make the vector of a memory in the space of its mode."""
        if isinstance(event, Forgotten):
            return EncodedMemory(event.memory_id, frozenset(event.places))
        memory = event.memory
        last = () if memory.embedding.place is None else (memory.embedding.place,)
        due = EncodedMemory(memory.memory_id, frozenset((*event.strays, *last)), memory, partition)
        try:
            embedder, space = self._spaces_at(partition).of(memory)
        except (ModelMissing, Rejected) as missing:
            # A mode that is gone: the change that takes its memories elsewhere is on its way.
            return replace(due, error=_explained(missing))
        try:
            encoded = await self._encoded(memory, embedder, space)
            return replace(due, space=space, vector=encoded.pooled, tokens=encoded.tokens)
        except Unavailable:
            raise
        except Exception as problem:
            return replace(due, space=space, error=_explained(problem))

    async def write(self, batch: Sequence[EncodedMemory]) -> list[Embedded]:
        """Write a batch, and say of each memory that is still there what became of its vector."""
        latest = {one.memory_id: one for one in batch}
        due = list(latest.values())
        for space in dict.fromkeys(one.space for one in due):
            beside = [one for one in due if one.space == space]
            latest.update((one.memory_id, one) for one in await self._upsert(space, beside))
        collections = await self._index.spaces()
        # A worker that was killed may have written what is overtaken here, and have told nobody.
        overtaken = {one.place for one in batch if one is not latest[one.memory_id] and one.place is not None}
        for place in overtaken.union(*(one.strays for one in batch)):
            left = [one.memory_id for one in self._left(batch, place, latest)]
            kept = collections.get(collection_name(place.mode, place.space))
            if left and kept is not None:
                await self._index.delete(VectorSpace(place.mode, kept), left)
        await self._remove_untold(batch, latest, collections)
        # After the vectors: who declares a category from now on finds them, and looks at these items himself.
        under = {memory_id: await self._under(one) for memory_id, one in latest.items()}
        return [
            self._said(one, one.memory, under[memory_id]) for memory_id, one in latest.items() if one.memory is not None
        ]

    async def has_written(self, event: Embedded) -> bool:
        """Whether the vector that an event tells of is in the index: what was written before may be lost since."""
        if (place := written_location(event)) is None:
            return False
        kept = (await self._index.spaces()).get(collection_name(place.mode, place.space))
        if kept is None:
            return False
        found = await self._index.hashes(VectorSpace(place.mode, kept), [event.memory_id])
        return found.get(event.memory_id) == event.content_hash

    def _left(
        self, batch: Sequence[EncodedMemory], place: VectorLocation, latest: dict[str, EncodedMemory]
    ) -> list[EncodedMemory]:
        """Those of a batch that must not stay in a place: what the last event of each says counts."""
        ids = {one.memory_id for one in batch if place in one.strays or one.place == place}
        return [latest[memory_id] for memory_id in ids if latest[memory_id].place != place]

    async def _remove_untold(
        self, batch: Sequence[EncodedMemory], latest: dict[str, EncodedMemory], collections: Mapping[str, Fingerprint]
    ) -> None:
        """Remove what was written by a process that was killed before it told anybody.

        The mode of the same event may have had another embedder then, or may be gone by now: the vector lies in another
        collection of that mode, and no record knows of it.
        """
        said = {(one.memory.mode, one.memory_id) for one in batch if one.memory is not None}
        for name, fingerprint in collections.items():
            space = VectorSpace.held_by(name, fingerprint)
            place = VectorLocation(mode=space.mode, space=fingerprint.digest)
            elsewhere = [one for mode, one in said if mode == space.mode and latest[one].place != place]
            if elsewhere and (found := await self._index.hashes(space, elsewhere)):
                await self._index.delete(space, list(found))

    async def _encoded(self, memory: Memory, embedder: Embedder, space: VectorSpace) -> Encoded:
        """The vectors that the memory had in another mode, where they are the same; else new ones."""
        before = memory.embedding
        moved = before.place is not None and before.place.space == space.fingerprint.digest
        if moved and before.place and before.place.mode != space.mode and before.content_hash == memory.content_hash:
            was = VectorSpace(before.place.mode, space.fingerprint)
            if (kept := await self._kept(was, memory)) is not None:
                return kept
        return await embedder.passage(embedding_text(memory))

    async def _kept(self, space: VectorSpace, memory: Memory) -> Encoded | None:
        """The vectors of the memory's text as the index has it; None where another text's is there, or comes."""
        ids = [memory.memory_id]
        before = await self._index.hashes(space, ids)
        vectors = await self._index.vectors(space, ids)
        # Batches are written between two awaits: what stands on both sides of the vector stood there with it.
        after = await self._index.hashes(space, ids)
        hashes = {found.get(memory.memory_id) for found in (before, after)}
        return vectors.get(memory.memory_id) if hashes == {memory.content_hash} else None

    async def _upsert(self, space: VectorSpace | None, batch: list[EncodedMemory]) -> list[EncodedMemory]:
        """Write what has a vector. What the index refuses is `failed`, and costs its neighbours nothing."""
        if space is None:
            return batch
        points = [_point(one.memory, one) for one in batch if one.vector is not None and one.memory is not None]
        try:
            await self._index.upsert(space, points)
        except Unavailable:
            raise
        except Exception as problem:
            if len(batch) == 1:
                return [replace(batch[0], vector=None, error=_explained(problem))]
            return [each for one in batch for each in await self._upsert(space, [one])]
        return batch

    async def _under(self, one: EncodedMemory) -> tuple[CategoryAssignment, ...] | None:
        """The categories that an item's vector fits; None where that can't be told."""
        if self._matcher_at is None or one.memory is None or one.vector is None:
            return None
        try:
            embedder, space = self._spaces_at(one.partition).of(one.memory)
            # A mode that has another embedder since has its memories embedded again.
            return (
                await self._matcher_at(one.partition).match(one.memory, one.vector, embedder)
                if space == one.space
                else None
            )
        except (ModelMissing, Rejected):
            return None

    def _said(self, one: EncodedMemory, memory: Memory, under: tuple[CategoryAssignment, ...] | None) -> Embedded:
        without_model = one.space is None
        return Embedded(
            memory_id=memory.memory_id,
            content_hash=memory.content_hash,
            mode=memory.mode,
            status="waiting" if without_model else "failed" if one.error else "ready",
            space=None if one.space is None else one.space.fingerprint.digest,
            at=self._clock.now(),
            error=one.error,
            categories=under,
        )


def _explained(problem: Exception) -> str:
    text = str(problem) if isinstance(problem, ModelMissing) else f"{type(problem).__name__}: {problem}"
    return text[:MAX_ERROR_CHARS]


def _point(memory: Memory, one: EncodedMemory) -> Point:
    assert one.vector is not None
    return Point(
        memory_id=memory.memory_id,
        vector=one.vector,
        boundary=memory.index_name,
        partition=one.partition,
        scope=memory.scope,
        mode=memory.mode,
        type=memory.type,
        occurred_ms=memory.occurred_ms,
        content_hash=memory.content_hash,
        tokens=one.tokens,
    )
