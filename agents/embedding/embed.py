"""Embed memories: the only writer of the vector index.

Enters: `Remembered` and `Forgotten`, in the order of the changes. `encode` makes the vectors, several at once; `write`
writes a batch to the index, removes outdated points, and returns the `Embedded` events that must follow. The index is
durable when `write` returns. Idempotent. While the index or the model's process is not reachable both raise
`Unavailable`, and the caller retries; a text that the model can't embed is `failed`; without a loaded model a memory
is `waiting` and delays no other.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agents.categories.matching import CategoryMatcher
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.clock import Clock
from agents.ports.embedder import Embedder
from agents.ports.vector_index import VectorIndex, VectorIndexes
from agents.rules.memory.embedding_status import written_location
from agents.rules.text.embedding_text import embedding_text
from schemas.failures import ModelMissing, Rejected, Unavailable
from schemas.internal.events import Embedded, Forgotten, Remembered
from schemas.models.vectors import Encoded, Matrix, Point, Vector
from schemas.state.memories import CategoryAssignment, Memory, VectorLocation
from schemas.state.modes import Fingerprint, VectorSpace, collection_name

MAX_ERROR_CHARS = 300
"""Characters of an error that are stored on the record."""


@dataclass(frozen=True, slots=True)
class EncodedMemory:
    """A memory with its vectors and their space, or with an error; `strays` are locations of outdated vectors.

    `memory` is None for a forgotten one; one that is not searchable has no vector.
    """

    memory_id: str
    strays: frozenset[VectorLocation]
    memory: Memory | None = None
    partition: int = 0
    space: VectorSpace | None = None
    vector: Vector | None = None
    tokens: Matrix | None = None
    error: str | None = None
    interaction_probabilities: Vector | None = None
    """Those of the classifier, where the text was embedded as it is."""

    @property
    def place(self) -> VectorLocation | None:
        """The location of the new vector."""
        if self.space is None or self.vector is None:
            return None
        return VectorLocation(mode=self.space.mode, space=self.space.fingerprint.digest)


class Embed:
    """`Remembered` and `Forgotten` in, points written and removed, `Embedded` out."""

    def __init__(
        self,
        spaces_at: Callable[[int], VectorSpaces],
        indexes: VectorIndexes,
        clock: Clock,
        matcher_at: Callable[[int], CategoryMatcher | None] = lambda _: None,
    ) -> None:
        """`spaces_at` and `matcher_at` return the objects of a partition: a batch has memories of several.

        The matcher assigns categories; None disables assignment.
        """
        self._matcher_at = matcher_at
        self._spaces_at = spaces_at
        self._indexes = indexes
        self._clock = clock

    async def encode(self, event: Remembered | Forgotten, partition: int) -> EncodedMemory:
        """Make the vector of a memory in the space of its mode."""
        if isinstance(event, Forgotten):
            return EncodedMemory(event.memory_id, frozenset(event.places), partition=partition)
        memory = event.memory
        last = () if memory.embedding.place is None else (memory.embedding.place,)
        due = EncodedMemory(memory.memory_id, frozenset((*event.strays, *last)), memory, partition)
        if not memory.visibility.searchable:
            return due
        try:
            embedder, space = self._spaces_at(partition).of(memory)
        except (ModelMissing, Rejected) as missing:
            # The mode was deleted: the change that moves its memories is in flight.
            return replace(due, error=_error_text(missing))
        index = self._indexes.at(partition)
        try:
            encoded = await self._encode(memory, embedder, space, index)
            unprefixed = not space.fingerprint.passage_prefix
            return replace(
                due,
                space=space,
                vector=encoded.pooled,
                tokens=encoded.tokens,
                interaction_probabilities=encoded.interaction_probabilities if unprefixed else None,
            )
        except Unavailable:
            raise
        except ModelMissing as missing:
            # It was unloaded while nothing used it, and is being loaded again.
            return replace(due, error=_error_text(missing))
        except Exception as problem:
            return replace(due, space=space, error=_error_text(problem))

    async def write(self, batch: Sequence[EncodedMemory]) -> list[Embedded]:
        """Write a batch; return an event for each memory that is searchable and not forgotten."""
        partitions = dict.fromkeys(one.partition for one in batch)
        writing = [self._write([one for one in batch if one.partition == each], each) for each in partitions]
        # At the same time, as each waits for the disk. All of them end before one is repeated.
        written = await asyncio.gather(*writing, return_exceptions=True)
        return [event for events in written for event in raised_or(events)]

    async def _write(self, batch: Sequence[EncodedMemory], partition: int) -> list[Embedded]:
        index = self._indexes.at(partition)
        latest = {one.memory_id: one for one in batch}
        due = list(latest.values())
        for space in dict.fromkeys(one.space for one in due):
            same_space = [one for one in due if one.space == space]
            latest.update((one.memory_id, one) for one in await self._upsert(index, space, same_space))
        collections = await index.spaces()
        # A killed worker may have written the replaced ones and published no event.
        replaced = {one.place for one in batch if one is not latest[one.memory_id] and one.place is not None}
        for place in replaced.union(*(one.strays for one in batch)):
            outdated = [one.memory_id for one in self._outdated(batch, place, latest)]
            fingerprint = collections.get(collection_name(place.mode, place.space))
            if outdated and fingerprint is not None:
                await index.delete(VectorSpace(place.mode, fingerprint), outdated)
        await self._remove_unreported(index, batch, latest, collections)
        # After the vectors: a category that is declared from now on finds them, and is matched with these items.
        categories = {memory_id: await self._match_categories(one) for memory_id, one in latest.items()}
        return [
            self._event(one, one.memory, categories[memory_id])
            for memory_id, one in latest.items()
            if one.memory is not None and one.memory.visibility.searchable
        ]

    async def has_written(self, event: Embedded, partition: int) -> bool:
        """True if the event's vector is in the index: a written one may have been lost since."""
        if (place := written_location(event)) is None:
            return False
        index = self._indexes.at(partition)
        fingerprint = (await index.spaces()).get(collection_name(place.mode, place.space))
        if fingerprint is None:
            return False
        found = await index.hashes(VectorSpace(place.mode, fingerprint), [event.memory_id])
        return found.get(event.memory_id) == event.content_hash

    def _outdated(
        self, batch: Sequence[EncodedMemory], place: VectorLocation, latest: dict[str, EncodedMemory]
    ) -> list[EncodedMemory]:
        """Return the memories of a batch with an outdated vector in a location: the last event of each decides."""
        ids = {one.memory_id for one in batch if place in one.strays or one.place == place}
        return [latest[memory_id] for memory_id in ids if latest[memory_id].place != place]

    async def _remove_unreported(
        self,
        index: VectorIndex,
        batch: Sequence[EncodedMemory],
        latest: dict[str, EncodedMemory],
        collections: Mapping[str, Fingerprint],
    ) -> None:
        """Remove vectors that a process wrote before it was killed without publishing the event.

        The mode of the same event may have had another embedder then, or may be deleted now: the vector lies in another
        collection of that mode, and no record has its location.
        """
        embedded = {(one.memory.mode, one.memory_id) for one in batch if one.memory is not None}
        for name, fingerprint in collections.items():
            space = VectorSpace.held_by(name, fingerprint)
            place = VectorLocation(mode=space.mode, space=fingerprint.digest)
            elsewhere = [one for mode, one in embedded if mode == space.mode and latest[one].place != place]
            if elsewhere and (found := await index.hashes(space, elsewhere)):
                await index.delete(space, list(found))

    async def _encode(self, memory: Memory, embedder: Embedder, space: VectorSpace, index: VectorIndex) -> Encoded:
        """Return the vectors that the memory had in another mode if text and space are the same, otherwise new ones."""
        before = memory.embedding
        moved = before.place is not None and before.place.space == space.fingerprint.digest
        if moved and before.place and before.place.mode != space.mode and before.content_hash == memory.content_hash:
            source = VectorSpace(before.place.mode, space.fingerprint)
            if (stored := await self._stored_vectors(index, source, memory)) is not None:
                return stored
        return await embedder.passage(embedding_text(memory), boundary=memory.boundary)

    async def _stored_vectors(self, index: VectorIndex, space: VectorSpace, memory: Memory) -> Encoded | None:
        """Return the stored vectors of the memory's text; None if those of another text are stored or being written."""
        ids = [memory.memory_id]
        before = await index.hashes(space, ids)
        vectors = await index.vectors(space, ids)
        # A batch is written between two awaits: equal hashes before and after belong to these vectors.
        after = await index.hashes(space, ids)
        hashes = {found.get(memory.memory_id) for found in (before, after)}
        return vectors.get(memory.memory_id) if hashes == {memory.content_hash} else None

    async def _upsert(
        self, index: VectorIndex, space: VectorSpace | None, batch: list[EncodedMemory]
    ) -> list[EncodedMemory]:
        """Write the points of a batch; a point that the index refuses is `failed`, without effect on the others."""
        if space is None:
            return batch
        points = [_point(one.memory, one) for one in batch if one.vector is not None and one.memory is not None]
        try:
            await index.upsert(space, points)
        except Unavailable:
            raise
        except Exception as problem:
            if len(batch) == 1:
                return [replace(batch[0], vector=None, error=_error_text(problem))]
            return [each for one in batch for each in await self._upsert(index, space, [one])]
        return batch

    async def _match_categories(self, one: EncodedMemory) -> tuple[CategoryAssignment, ...] | None:
        """Return the categories that match an item's vector; None if that is unknown."""
        if one.memory is None or one.vector is None or one.memory.origin == "said":
            return None
        if (matcher := self._matcher_at(one.partition)) is None:
            return None
        try:
            embedder, space = self._spaces_at(one.partition).of(one.memory)
            if space != one.space:
                return None  # The mode's embedder has changed: the memory is embedded again.
            return await matcher.match(one.memory, one.vector, embedder)
        except (ModelMissing, Rejected):
            return None

    def _event(self, one: EncodedMemory, memory: Memory, categories: tuple[CategoryAssignment, ...] | None) -> Embedded:
        without_model = one.space is None
        return Embedded(
            memory_id=memory.memory_id,
            content_hash=memory.content_hash,
            latest=memory.latest if memory.origin == "said" else None,
            mode=memory.mode,
            status="waiting" if without_model else "failed" if one.error else "ready",
            space=None if one.space is None else one.space.fingerprint.digest,
            at=self._clock.now(),
            error=one.error,
            categories=categories,
        )


def raised_or(result: list[Embedded] | BaseException) -> list[Embedded]:
    """Return a result, or raise it."""
    if isinstance(result, BaseException):
        raise result
    return result


def _error_text(problem: Exception) -> str:
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
