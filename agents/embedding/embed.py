"""Embed memories: the only writer of the vector index.

Enters: `Remembered` and `Forgotten`, in the order of the changes. `encode` makes the vectors, several at once; `write`
writes a batch to the index, removes outdated points, and returns the `Embedded` events that must follow. The index is
durable when `write` returns. Idempotent. While the index or the model's process is not reachable both raise
`Unavailable`, and the caller retries; a text that the model can't embed is `failed`; without a loaded model a memory
is `waiting` and delays no other.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from modestream_client.vocabulary import EmbeddingErrorCode

from agents.categories.matching import CategoryMatcher
from agents.embedding.held_vectors import EncodedMemory, HeldVectors
from agents.modes.vector_spaces import VectorSpaces, encode_memory
from agents.ports.clock import Clock
from agents.ports.indexes import VectorIndex, VectorIndexes
from agents.ports.models import Embedder
from agents.rules.memory.embedding_status import unkept_event, written_location
from schemas.failures import ModelMissing, Rejected, Unavailable
from schemas.internal.events import Embedded, Forgotten, Released, Remembered
from schemas.models.vectors import Encoded, Point
from schemas.state.memories import CategoryAssignment, Memory
from schemas.state.modes import Fingerprint, VectorSpace, collection_name

MAX_ERROR_CHARS = 300
"""Characters of an error that are stored on the record."""


def ignore_space(_: Fingerprint) -> None:
    """Note nothing."""


class Embed:
    """`Remembered` and `Forgotten` in, points written and removed, `Embedded` out."""

    def __init__(
        self,
        spaces_at: Callable[[int], VectorSpaces],
        indexes: VectorIndexes,
        clock: Clock,
        matcher_at: Callable[[int], CategoryMatcher | None] = lambda _: None,
        note_space: Callable[[Fingerprint], None] = ignore_space,
        *,
        keeps_vectors: bool = True,
    ) -> None:
        """`spaces_at` and `matcher_at` return the objects of a partition: a batch has memories of several.

        The matcher assigns categories; None disables assignment. `note_space` gets the space of each batch.
        Without `keeps_vectors` none are made.
        """
        self.keeps_vectors = keeps_vectors
        self._note_space = note_space
        self._matcher_at = matcher_at
        self._spaces_at = spaces_at
        self._indexes = indexes
        self._held_vectors = HeldVectors(spaces_at)
        self._clock = clock
        self._writing: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Locks by partition, one batch at a time: a restored vector must not overwrite that of a later text."""

    async def encode(self, event: Remembered | Forgotten | Released, partition: int) -> EncodedMemory:
        """Make the vector of a memory in the space of its mode, and in the space that serves until it is complete."""
        if isinstance(event, Forgotten):
            return EncodedMemory(event.memory_id, frozenset(event.places), partition=partition)
        memory = event.memory
        if isinstance(event, Released):
            return EncodedMemory(memory.memory_id, frozenset(), memory, partition, is_release=True)
        last = () if memory.embedding.place is None else (memory.embedding.place,)
        due = EncodedMemory(memory.memory_id, frozenset((*event.strays, *last)), memory, partition)
        if not (memory.visibility.searchable and self.keeps_vectors):
            return due
        made = await self._encoded(replace(due, held=self._held(memory, partition)), memory)
        # One that failed is found by its words alone, in each space.
        has_failed = made.space is not None and made.error is not None
        return made if has_failed else replace(made, beside=await self._beside(memory, partition))

    async def encode_lost(self, memory: Memory, partition: int) -> EncodedMemory:
        """Make the vector again that a record names, in the space of its mode alone. Raises Unavailable."""
        held = self._held(memory, partition)
        return await self._encoded(EncodedMemory(memory.memory_id, frozenset(), memory, partition, held=held), memory)

    async def _encoded(self, due: EncodedMemory, memory: Memory) -> EncodedMemory:
        """Return a memory with its vector in its mode's space, or with the reason for lacking one."""
        try:
            embedder, space = self._spaces_at(due.partition).of(memory)
        except (ModelMissing, Rejected) as missing:
            # Of a deleted mode the change that moves its memories is in flight.
            code: EmbeddingErrorCode = "model_missing" if isinstance(missing, ModelMissing) else "unknown_mode"
            return replace(due, error=_error_text(missing), code=code)
        try:
            encoded = await self._encode(memory, embedder, space, self._indexes.at(due.partition))
            return replace(due, space=space, vectors=encoded)
        except Unavailable:
            raise
        except ModelMissing as missing:
            # It was unloaded while nothing used it, and is being loaded again.
            return replace(due, error=_error_text(missing), code="model_missing")
        except Exception as problem:
            return replace(due, space=space, error=_error_text(problem), code="text_refused")

    async def write(self, batch: Sequence[EncodedMemory]) -> list[Embedded]:
        """Write a batch; return an event for each memory that is searchable and not forgotten."""
        return await self._of_each_partition(batch, self._write)

    async def restore(self, batch: Sequence[EncodedMemory], is_current: Callable[[Memory], bool]) -> list[Embedded]:
        """Write vectors that the index has lost, of records that name them; return events for those it refuses.

        `is_current` is False for a memory that has changed since it was read: its own event brings its vector. Vectors
        in other spaces stay as they are.
        """

        async def restore(some: Sequence[EncodedMemory], partition: int) -> list[Embedded]:
            index = self._indexes.at(partition)
            due = [encoded for encoded in some if encoded.memory is not None and is_current(encoded.memory)]
            written = await self._upsert_all(index, due)
            refused = {encoded.memory_id: encoded for encoded in written if encoded.vectors is None}
            if not refused:
                return []
            verified = await self._held_vectors.verify(index, refused, (), await index.spaces())
            checked = verified.values()
            return [self._event(encoded, encoded.memory, None) for encoded in checked if encoded.memory is not None]

        return await self._of_each_partition(batch, restore)

    async def _of_each_partition(
        self, batch: Sequence[EncodedMemory], write: Callable[[Sequence[EncodedMemory], int], Awaitable[list[Embedded]]]
    ) -> list[Embedded]:
        """Write a batch (only one at a time in each partition); return all events."""

        async def in_turn(partition: int) -> list[Embedded]:
            async with self._writing[partition]:
                return await write([encoded for encoded in batch if encoded.partition == partition], partition)

        partitions = dict.fromkeys(encoded.partition for encoded in batch)
        # At the same time, as each waits for the disk. All of them end before one is repeated.
        written = await asyncio.gather(*map(in_turn, partitions), return_exceptions=True)
        return [event for events in written for event in raised_or(events)]

    async def _write(self, batch: Sequence[EncodedMemory], partition: int) -> list[Embedded]:
        index = self._indexes.at(partition)
        latest = {encoded.memory_id: encoded for encoded in batch if not encoded.is_release}
        written = {encoded.memory_id: encoded for encoded in await self._upsert_all(index, list(latest.values()))}
        latest = {memory_id: written[memory_id] for memory_id in latest}
        due_besides = [encoded.beside for encoded in latest.values() if encoded.beside is not None]
        besides = await self._upsert_all(index, due_besides)
        collections = await index.spaces()
        latest = await self._held_vectors.verify(index, latest, besides, collections)
        await self._held_vectors.remove_others(index, batch, latest, collections)
        # After the vectors: a category that is declared from now on finds them, and is matched with these items.
        categories = {memory_id: await self._match_categories(encoded) for memory_id, encoded in latest.items()}
        return [
            self._event(encoded, encoded.memory, categories[memory_id])
            for memory_id, encoded in latest.items()
            if encoded.memory is not None and encoded.memory.visibility.searchable
        ]

    async def has_written(self, event: Embedded, partition: int) -> bool:
        """True if the event's vector is in the index: a written one may have been lost since."""
        if (location := written_location(event)) is None:
            return False
        index = self._indexes.at(partition)
        fingerprint = (await index.spaces()).get(collection_name(location.mode, location.space))
        if fingerprint is None:
            return False
        hashes = await index.hashes(VectorSpace(location.mode, fingerprint), [event.memory_id])
        return hashes.get(event.memory_id) == event.content_hash

    def _held(self, memory: Memory, partition: int) -> tuple[str, ...]:
        """Return the other spaces in which the memory's vector may stay: the space of its mode's former embedder."""
        held, spaces = memory.embedding.held, self._spaces_at(partition)
        if not held or not spaces.has_former(memory):
            return ()
        former = spaces.former_of(memory) if len(held) > 1 else None
        return held if former is None else (former[1].fingerprint.digest,)

    async def _beside(self, memory: Memory, partition: int) -> EncodedMemory | None:
        """Embed a memory by the former embedder as well, if that one serves and has no vector of it yet.

        Without this vector it is found by its words until all vectors of the declared embedder are made.
        """
        spaces = self._spaces_at(partition)
        if memory.embedding.held or not spaces.has_former(memory) or not spaces.awaits_declared(memory):
            return None
        if (former := spaces.former_of(memory)) is None:
            return None
        embedder, space = former
        try:
            encoded = await encode_memory(embedder, memory)
        except Exception:
            return None
        return EncodedMemory(memory.memory_id, frozenset(), memory, partition, space=space, vectors=encoded)

    async def _upsert_all(self, index: VectorIndex, due: Sequence[EncodedMemory]) -> list[EncodedMemory]:
        """Write the points of each space; those that the index refuses are `failed`."""
        written: list[EncodedMemory] = []
        for space in dict.fromkeys(encoded.space for encoded in due):
            written += await self._upsert(index, space, [encoded for encoded in due if encoded.space == space])
        return written

    async def _encode(self, memory: Memory, embedder: Embedder, space: VectorSpace, index: VectorIndex) -> Encoded:
        """Return the vectors that the memory had in another mode if text and space are the same, otherwise new ones."""
        before = memory.embedding
        moved = before.place is not None and before.place.space == space.fingerprint.digest
        if moved and before.place and before.place.mode != space.mode and before.content_hash == memory.content_hash:
            source, ids = VectorSpace(before.place.mode, space.fingerprint), [memory.memory_id]
            hash_before = (await index.hashes(source, ids)).get(memory.memory_id)
            stored = (await index.vectors(source, ids)).get(memory.memory_id)
            # A batch is written between two awaits: equal hashes before and after belong to these vectors.
            hash_after = (await index.hashes(source, ids)).get(memory.memory_id)
            if stored is not None and hash_before == hash_after == memory.content_hash:
                return stored
        return await encode_memory(embedder, memory)

    async def _upsert(
        self, index: VectorIndex, space: VectorSpace | None, batch: list[EncodedMemory]
    ) -> list[EncodedMemory]:
        """Write the points of a batch; a point that the index refuses is `failed`, without effect on the others."""
        if space is None:
            return batch
        points = [
            Point(
                memory_id=encoded.memory.memory_id,
                vector=encoded.vectors.pooled,
                boundary=encoded.memory.index_name,
                partition=encoded.partition,
                scope=encoded.memory.scope,
                mode=encoded.memory.mode,
                type=encoded.memory.type,
                occurred_ms=encoded.memory.occurred_ms,
                content_hash=encoded.memory.content_hash,
                tokens=encoded.vectors.tokens,
                passages=encoded.vectors.passages,
            )
            for encoded in batch
            if encoded.vectors is not None and encoded.memory is not None
        ]
        self._note_space(space.fingerprint)
        try:
            await index.upsert(space, points)
        except Unavailable:
            raise
        except Exception as problem:
            if len(batch) == 1:
                return [replace(batch[0], vectors=None, error=_error_text(problem), code="vector_refused")]
            return [each for encoded in batch for each in await self._upsert(index, space, [encoded])]
        return batch

    async def _match_categories(self, encoded: EncodedMemory) -> tuple[CategoryAssignment, ...] | None:
        if encoded.memory is None or encoded.vectors is None or encoded.memory.origin == "said":
            return None
        if (matcher := self._matcher_at(encoded.partition)) is None:
            return None
        try:
            embedder, space = self._spaces_at(encoded.partition).of(encoded.memory)
            if space != encoded.space:
                return None  # The mode's embedder has changed: the memory is embedded again.
            return await matcher.match(encoded.memory, encoded.vectors.pooled, embedder)
        except (ModelMissing, Rejected):
            return None

    def _event(
        self, encoded: EncodedMemory, memory: Memory, categories: tuple[CategoryAssignment, ...] | None
    ) -> Embedded:
        if not self.keeps_vectors:
            return unkept_event(memory, self._clock.now())
        without_model = encoded.space is None
        return Embedded(
            memory_id=memory.memory_id,
            content_hash=memory.content_hash,
            latest=memory.latest if memory.origin == "said" else None,
            mode=memory.mode,
            status="waiting" if without_model else "failed" if encoded.error else "ready",
            space=None if encoded.space is None else encoded.space.fingerprint.digest,
            at=self._clock.now(),
            error=encoded.error,
            code=encoded.code,
            categories=categories,
            held=encoded.held,
        )


def raised_or(result: list[Embedded] | BaseException) -> list[Embedded]:
    if isinstance(result, BaseException):
        raise result
    return result


def _error_text(problem: Exception) -> str:
    text = str(problem) if isinstance(problem, ModelMissing) else f"{type(problem).__name__}: {problem}"
    return text[:MAX_ERROR_CHARS]
