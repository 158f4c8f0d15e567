"""Re-embed memories without a valid vector, in the background.

Runs after partition assignment, when a mode's model is loaded, and when a command has changed an embedder. Vectors that
a record names and the index has lost are made again as they were (`RestoreVectors`). Others are requested by `stale`
events. Both a page at a time; the next page waits until the indexer has finished most of the last one, so that new
turns are not delayed.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Literal, TypeVar

import structlog
from modestream_client.vocabulary import EmbeddingStatus

from agents.embedding.embed import Embed
from agents.embedding.held_vectors import EncodedMemory
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.indexes import VectorIndex, VectorIndexes
from agents.ports.models import Embedders
from agents.rules.memory.embedding_status import awaits_model, report_of, unkept_event
from schemas.failures import ModelMissing, Unavailable
from schemas.internal.events import Embedded
from schemas.state.memories import Memory, VectorLocation
from schemas.state.modes import ENGLISH_EMBEDDER, GENERAL, Fingerprint, Mode, VectorSpace, collection_name
from streams.backoff import until_available
from streams.batching import batches
from streams.flow.publisher import await_all
from streams.flow.requests.channel import event_out
from streams.flow.worker_context import WorkerContext

# Make vectors again that the index has lost, beside the events: their records are complete and stay as they are.
#
# Enters: memories whose record names a vector that is not in the index. Leaves: their points, and an event for each
# that could not be made. Guaranteed: a memory that changes meanwhile is left to its own event; after a kill the next
# comparison finds what is left. By way of events each vector would cost two writes of its record, of its words and of
# its changelog.

MAX_ENCODING = 32
"""Texts that wait for the embedder at the same time: it never idles, and another user's text, whose turn comes round
robin, waits a tenth of a second at most."""

WRITE_BATCH = 64
"""Vectors in one write: each write waits for the disk."""


class RestoreVectors:
    """Restores the vectors of one partition. To be used once."""

    def __init__(self, embed: Embed, partition: int, ctx: WorkerContext) -> None:
        self._embed = embed
        self._partition = partition
        self._ctx = ctx
        self._slots = asyncio.Semaphore(MAX_ENCODING)
        self._encoding: set[asyncio.Task[None]] = set()
        self._encoded: list[EncodedMemory] = []
        self._writing: asyncio.Task[None] | None = None

    async def run(self, memories: AsyncIterator[Memory]) -> int:
        """Restore all of them; return their number. Raises KeyError when the partition has left."""
        count = 0
        try:
            async for memory in memories:
                await self._slots.acquire()
                task = asyncio.create_task(self._encode(memory))
                self._encoding.add(task)
                task.add_done_callback(self._encoding.discard)
                count += 1
                if len(self._encoded) >= WRITE_BATCH:
                    await self._write_soon()
            await asyncio.gather(*self._encoding)
            await self._write_soon()
            await self._until_written()
        finally:
            for task in (*self._encoding, *filter(None, (self._writing,))):
                task.cancel()
        return count

    async def _encode(self, memory: Memory) -> None:
        encode = partial(self._embed.encode_lost, memory, self._partition)
        try:
            encoded = await until_available(encode, "embedder", self._ctx.meters)
            # After the wait: meanwhile the list may have become the batch of a write.
            self._encoded.append(encoded)
        finally:
            self._slots.release()

    async def _write_soon(self) -> None:
        """Write the encoded memories once the last write is done; texts are embedded meanwhile."""
        await self._until_written()
        batch, self._encoded = self._encoded, []
        self._writing = asyncio.create_task(self._write(batch))

    async def _until_written(self) -> None:
        if self._writing is not None:
            await self._writing

    async def _write(self, batch: Sequence[EncodedMemory]) -> None:
        restore = partial(self._embed.restore, batch, self._is_current)
        failed = await until_available(restore, "vector index", self._ctx.meters)
        for _ in range(len(batch) - len(failed)):
            self._ctx.meters.embedded("ready")
        if failed:
            boundaries = {encoded.memory_id: encoded.memory.boundary for encoded in batch if encoded.memory is not None}
            await await_all([await self._report(event, boundaries[event.memory_id]) for event in failed])

    async def _report(self, event: Embedded, boundary: str) -> Awaitable[object]:
        self._ctx.meters.embedded(event.status)
        return await self._ctx.publisher.send(event_out(self._ctx.topics.embedded, boundary, event))

    def _is_current(self, memory: Memory) -> bool:
        """True if the record still names this vector of this text."""
        if not self._ctx.is_assigned(self._partition):
            raise KeyError(self._partition)
        now = self._ctx.stores.memories.get(self._partition, memory.memory_id)
        return now is not None and now.visibility.searchable and vector_of(now) == vector_of(memory)


def vector_of(memory: Memory) -> tuple[object, ...]:
    """Return what says which vector a memory has: the text, the place, and whether it is there."""
    return memory.content_hash, memory.embedding.place, memory.embedding.status


log = structlog.get_logger()

Result = TypeVar("Result")

ELIGIBLE_STATUSES: tuple[EmbeddingStatus, ...] = ("ready", "pending", "stale", "failed")

NOT_READY_STATUSES: tuple[EmbeddingStatus, ...] = ("pending", "stale", "failed", "not_applicable")
"""Statuses of memories with no point, or with one of another text or space: it is not counted."""

REEMBEDDING_PAGE_SIZE = 200
"""Memories between two pauses for the event loop, and in one batch of events."""

MAX_INDEXER_LAG = 300
"""Lag of the indexer, in events, above which the next page waits."""

NO_BOUNDARY = ""
"""The key of no user: its declarations are those of a user that has declared nothing."""

INDEXER_POLL_INTERVAL_S = 0.1


class Reembedding:
    """Compares records with the vector index and requests missing vectors. Runs until cancelled."""

    def __init__(
        self,
        embed: Embed,
        indexes: VectorIndexes,
        spaces_at: Callable[[int], VectorSpaces],
        embedders: Embedders,
        indexer_lag: Callable[[], int],
        ctx: WorkerContext,
    ) -> None:
        """`indexer_lag` counts the events before the indexer."""
        self._memories = ctx.stores.memories
        self._words = ctx.stores.words
        self._embed = embed
        self._indexes = indexes
        self._spaces_at = spaces_at
        self._embedders = embedders
        self._indexer_lag = indexer_lag
        self._ctx = ctx
        self._due: set[int] = set()
        self._comparing: set[int] = set()
        self._wake = asyncio.Event()

    def look(self, partitions: Collection[int]) -> None:
        """Queue partitions for a comparison."""
        self._due.update(partitions)
        self._wake.set()

    def unfinished(self) -> list[int]:
        """Return the partitions whose vectors are compared and restored, or are to be."""
        return sorted(self._due | self._comparing)

    async def run(self) -> None:
        """Compare queued partitions until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._due:
                self._comparing = {partition := self._due.pop()}
                try:
                    if requested := await self.reconcile(partition):
                        log.info("re-embedding memories", partition=partition, memories=requested)
                except (KeyError, Unavailable) as problem:
                    # The partition has left, or its lexical index can't be read: the next assignment compares again.
                    log.warning(
                        "comparing records with the vector index failed", partition=partition, problem=repr(problem)
                    )
                self._comparing = set()

    async def reconcile(self, partition: int) -> int:
        """Request every missing or outdated vector of a partition; return their number."""
        if not self._embed.keeps_vectors:
            # Report that vectors are not kept of the memories whose records have one, or wait for one.
            reported = 0
            for ids in batches(self._words.with_status(partition, ELIGIBLE_STATUSES), REEMBEDDING_PAGE_SIZE):
                memories = self._records(partition, ids)
                await self._publish([unkept_event(memory, self._ctx.clock.now()) for memory in memories], memories)
                reported += len(memories)
            return reported
        requested = 0
        for ids in batches(self._words.with_status(partition, ("not_applicable",)), REEMBEDDING_PAGE_SIZE):
            # The deployment has kept no vectors since.
            due = [memory for memory in self._records(partition, ids) if memory.visibility.searchable]
            requested += await self._request(due)
        for ids in batches(self._words.with_status(partition, ("stale", "pending")), REEMBEDDING_PAGE_SIZE):
            # A memory waits for a model that is loaded now; in-flight ones are left alone.
            due = [
                memory
                for memory in self._records(partition, ids)
                if awaits_model(memory) and self._spaces_at(partition).digest(memory) is not None
            ]
            requested += await self._request_unkept(due, partition)
        suspect = await self._suspect(partition)
        outdated: list[int] = []
        if suspect:
            lost = self._lost(partition, suspect, outdated)
            requested += await RestoreVectors(self._embed, partition, self._ctx).run(lost)
        return requested + sum(outdated)

    async def _lost(self, partition: int, suspect: set[VectorLocation], requested: list[int]) -> AsyncIterator[Memory]:
        """Yield the memories whose vector is to be made again as it was; request all others, and note their number."""
        for ids in batches(self._words.with_status(partition, ("ready",)), REEMBEDDING_PAGE_SIZE):
            lost, outdated = await self._missing(partition, ids, suspect)
            # A mode that is declared while this runs: its records are not marked yet, and may hold the vector.
            requested.append(await self._request_unkept(outdated, partition))
            if lost:
                await self._until_caught_up()
            for memory in lost:
                yield memory

    async def _request_unkept(self, memories: Sequence[Memory], partition: int) -> int:
        """Request the vectors that the index does not have already; return their number."""
        kept = await self._report_kept(memories, partition)
        return await self._request([memory for memory in memories if memory.memory_id not in kept])

    async def _report_kept(self, memories: Sequence[Memory], partition: int) -> set[str]:
        """Report the vectors that memories still have in the space of their mode; return the ids of these memories.

        So an embedder that is declared again embeds nothing whose vector was kept.
        """
        held: defaultdict[VectorLocation, list[Memory]] = defaultdict(list)
        for memory in memories:
            digest = self._spaces_at(partition).digest(memory)
            if digest is not None and digest in memory.embedding.held:
                held[VectorLocation(mode=memory.mode, space=digest)].append(memory)
        index = self._indexes.at(partition)
        fingerprints = await self._retrying(index.spaces) if held else {}
        kept: list[Memory] = []
        for place, some in held.items():
            fingerprint = fingerprints.get(collection_name(place.mode, place.space))
            hashes = await self._hashes(index, place.mode, fingerprint, [memory.memory_id for memory in some])
            found = [memory for memory in some if hashes.get(memory.memory_id) == memory.content_hash]
            await self._report("kept", place, found)
            kept += found
        return {memory.memory_id for memory in kept}

    async def _suspect(self, partition: int) -> set[VectorLocation]:
        """Return the locations in which points must be compared one by one.

        Equal counts of records and points suffice: each ready record has one point. Points of memories that are not
        ready would hide missing ones, so they are not counted.
        """
        index = self._indexes.at(partition)
        fingerprints = await self._retrying(index.spaces)
        counted = {
            name: await self._retrying(partial(index.count, VectorSpace.held_by(name, fingerprint), partition))
            for name, fingerprint in fingerprints.items()
        }
        # After the points: a memory that becomes ready in between may cause a needless comparison, but is not missed.
        places = self._words.ready_places(partition)
        unready = list(self._words.with_status(partition, NOT_READY_STATUSES))
        suspect = {place for place in places if self._may_precede_general(place, partition)}
        for place, ready in places.items():
            name = collection_name(place.mode, place.space)
            fingerprint = fingerprints.get(name)
            is_incomplete = fingerprint is None or self._is_outdated(fingerprint) or counted[name] < ready
            if is_incomplete or counted[name] - await self._count_points(index, place, fingerprint, unready) < ready:
                suspect.add(place)
        return suspect

    def _may_precede_general(self, place: VectorLocation, partition: int) -> bool:
        """True for vectors in `general` by another embedder than the one that the deployment has chosen for it.

        They are of users that the choice concerns, or of users that have declared `general` themselves.
        """
        general = self._ctx.stores.modes.get(partition, NO_BOUNDARY).general
        if place.mode != GENERAL or general.former is None:
            return False
        try:
            return self._embedders.of(general).fingerprint.digest != place.space
        except ModelMissing:
            return False

    async def _count_points(
        self, index: VectorIndex, place: VectorLocation, fingerprint: Fingerprint | None, memory_ids: Sequence[str]
    ) -> int:
        pages = batches(memory_ids, REEMBEDDING_PAGE_SIZE)
        return sum([len(await self._hashes(index, place.mode, fingerprint, ids)) for ids in pages])

    def _is_outdated(self, fingerprint: Fingerprint) -> bool:
        """True if the embedder of a collection makes other vectors now: another file, precision or pooling."""
        # Modes name the English model only as part of `general`, which has a second model.
        name = GENERAL if fingerprint.embedder == ENGLISH_EMBEDDER else fingerprint.embedder
        like = Mode(name="any", embedder=name, embedding_dim=fingerprint.dim, passage_prefix=fingerprint.passage_prefix)
        try:
            return self._embedders.of(like).fingerprint != fingerprint
        except ModelMissing:
            return False

    async def _missing(
        self, partition: int, ids: Sequence[str], suspect: set[VectorLocation]
    ) -> tuple[list[Memory], list[Memory]]:
        """Return the memories without a point in their record's location, and those that need one in another space."""
        memories, index = self._records(partition, ids), self._indexes.at(partition)
        fingerprints = await self._retrying(index.spaces)
        lost: list[Memory] = []
        outdated: list[Memory] = []
        for place in suspect:
            placed = [memory for memory in memories if memory.embedding.place == place]
            fingerprint = fingerprints.get(collection_name(place.mode, place.space))
            await self._drop_lost(index, place, fingerprint, memories)
            hashes = await self._hashes(index, place.mode, fingerprint, [memory.memory_id for memory in placed])
            for memory in placed:
                space = self._spaces_at(partition).digest(memory)
                is_lost = hashes.get(memory.memory_id) != memory.content_hash
                if is_lost and space == place.space:
                    lost.append(memory)
                elif is_lost or space not in (None, place.space):
                    outdated.append(memory)
        return lost, outdated

    async def _drop_lost(
        self, index: VectorIndex, place: VectorLocation, fingerprint: Fingerprint | None, memories: list[Memory]
    ) -> None:
        """Report the vectors of memories without one in this location, where the index has none that they hold."""
        held = [memory for memory in memories if memory.mode == place.mode and place.space in memory.embedding.held]
        hashes = await self._hashes(index, place.mode, fingerprint, [memory.memory_id for memory in held])
        lost = [memory for memory in held if hashes.get(memory.memory_id) != memory.content_hash]
        await self._report("lost", place, lost)

    async def _report(self, status: Literal["kept", "lost"], place: VectorLocation, memories: Sequence[Memory]) -> None:
        now = self._ctx.clock.now()
        await self._publish([report_of(memory, status, place.space, now) for memory in memories], memories)

    async def _hashes(
        self, index: VectorIndex, mode: str, fingerprint: Fingerprint | None, ids: Sequence[str]
    ) -> Mapping[str, str]:
        """Return the content hashes in one collection; none if it does not exist."""
        if fingerprint is None or not ids:
            return {}
        return await self._retrying(partial(index.hashes, VectorSpace(mode, fingerprint), ids))

    def _records(self, partition: int, ids: Sequence[str]) -> list[Memory]:
        # A copy of another worker's table can be read: its vectors are that worker's to make.
        if not self._ctx.is_assigned(partition):
            raise KeyError(partition)
        known = [self._memories.get(partition, memory_id) for memory_id in ids]
        return [memory for memory in known if memory is not None]

    async def _request(self, memories: Sequence[Memory]) -> int:
        """Publish the events of a page once the indexer has caught up with most of the last one."""
        if memories:
            await self._until_caught_up()
        events = [
            Embedded(
                memory_id=memory.memory_id,
                content_hash=memory.content_hash,
                mode=memory.mode,
                status="stale",
                at=self._ctx.clock.now(),
            )
            for memory in memories
        ]
        await self._publish(events, memories)
        return len(memories)

    async def _publish(self, events: Sequence[Embedded], memories: Sequence[Memory]) -> None:
        sent = []
        for event, memory in zip(events, memories, strict=True):
            out = event_out(self._ctx.topics.embedded, memory.boundary, event)
            sent.append(await self._ctx.publisher.send(out))
        await await_all(sent)
        await asyncio.sleep(0)

    async def _until_caught_up(self) -> None:
        while self._indexer_lag() > MAX_INDEXER_LAG:  # noqa: ASYNC110 - lag is Kafka's, and nothing tells of it
            await asyncio.sleep(INDEXER_POLL_INTERVAL_S)

    async def _retrying(self, call: Callable[[], Awaitable[Result]]) -> Result:
        return await until_available(call, "vector index", self._ctx.meters)
