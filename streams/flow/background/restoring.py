"""Make vectors again that the index has lost, beside the events: their records are complete and stay as they are.

Enters: memories whose record names a vector that is not in the index. Leaves: their points, and an event for each that
could not be made. Guaranteed: a memory that changes meanwhile is left to its own event; after a kill the next
comparison finds what is left. By way of events each vector would cost two writes of its record, of its words and of its
changelog.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from functools import partial

from agents.embedding.embed import Embed
from agents.embedding.held_vectors import EncodedMemory
from schemas.internal.events import Embedded
from schemas.state.memories import Memory
from streams.backoff import until_available
from streams.flow.publisher import await_all
from streams.flow.requests.events import event_out
from streams.flow.worker_context import WorkerContext

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
        """Write what is encoded, once the last write is done; texts are embedded meanwhile."""
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
