"""Has vectors made again that are missing or lie in another space: beside the events, and slower than they are.

It looks when partitions arrive, when a mode's model is loaded, and when a command has changed an embedder. What is to
be made again is told to the keeper as `stale`, a page at a time, and the next page waits until the indexer has done
most of the last one, so that new turns are not held up by old ones.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeVar

import structlog

from agents.modes.vector_spaces import VectorSpaces
from agents.ports.embedder import Embedders
from agents.ports.vector_index import VectorIndex
from agents.rules.memory.embedding_status import awaits_model
from schemas.events import Embedded
from schemas.failures import ModelMissing, Unavailable
from schemas.memories import EmbeddingStatus, Memory, VectorLocation
from schemas.modes import ENGLISH_EMBEDDER, GENERAL, Fingerprint, Mode, VectorSpace, collection_name
from streams.batching import batches
from streams.flow.requests.events import event_out
from streams.flow.support.awaiting import await_all
from streams.flow.support.backoff import until_available
from streams.flow.worker_context import WorkerContext

log = structlog.get_logger()

Result = TypeVar("Result")

NOT_READY_STATUSES: tuple[EmbeddingStatus, ...] = ("pending", "stale", "failed")
"""Statuses beside which the index may still have a vector, of another text or space: it is not counted."""

REEMBEDDING_PAGE_SIZE = 200
"""Memories between two pauses for the event loop, and the most that are told at once."""

MAX_INDEXER_LAG = 300
"""Events before the indexer at which the next page waits."""

INDEXER_POLL_INTERVAL_S = 0.1
"""Between two looks at how far the indexer is."""


class Reembedding:
    """Compares records with the vector index. Runs until it is cancelled."""

    def __init__(
        self,
        index: VectorIndex,
        spaces_at: Callable[[int], VectorSpaces],
        embedders: Embedders,
        waiting: Callable[[], int],
        ctx: WorkerContext,
    ) -> None:
        """Take the parts; `waiting` counts events before the indexer."""
        self._memories = ctx.stores.memories
        self._words = ctx.stores.words
        self._index = index
        self._spaces_at = spaces_at
        self._embedders = embedders
        self._waiting = waiting
        self._ctx = ctx
        self._due: set[int] = set()
        self._wake = asyncio.Event()

    def look(self, partitions: Collection[int]) -> None:
        """Have these partitions gone through soon."""
        self._due.update(partitions)
        self._wake.set()

    async def run(self) -> None:
        """Go through what is due, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._due:
                await self._gone_through(self._due.pop())

    async def _gone_through(self, partition: int) -> None:
        try:
            if asked := await self.reconcile(partition):
                log.info("vectors are made again", partition=partition, memories=asked)
        except (KeyError, Unavailable) as problem:
            # The partition has left, or its word index can't be read: whoever gets it next looks again.
            log.warning("vectors could not be compared", partition=partition, problem=repr(problem))

    async def reconcile(self, partition: int) -> int:
        """Ask for every vector of a partition that is not as it should be; returns how many."""
        asked = 0
        for ids in batches(self._words.with_status(partition, ("stale", "pending")), REEMBEDDING_PAGE_SIZE):
            due = [one for one in self._records(partition, ids) if self._may_embed(one, partition)]
            asked += await self._ask(due)
        suspect = await self._suspect(partition)
        for ids in batches(self._words.with_status(partition, ("ready",)), REEMBEDDING_PAGE_SIZE) if suspect else ():
            asked += await self._ask_missing(partition, ids, suspect)
        return asked

    def _may_embed(self, memory: Memory, partition: int) -> bool:
        """Whether a memory waits for a model that is there now; one that is on its way is left alone."""
        return awaits_model(memory) and self._spaces_at(partition).digest(memory) is not None

    async def _suspect(self, partition: int) -> set[VectorLocation]:
        """The places whose vectors are to be looked at one by one.

        Numbers that agree are enough: records and points are written one for one. Points of memories that are not ready
        would hide that others are missing, so they don't count.
        """
        fingerprints = await self._patiently(self._index.spaces)
        counted = {
            name: await self._patiently(partial(self._index.count, VectorSpace.held_by(name, kept), partition))
            for name, kept in fingerprints.items()
        }
        # After the points: what becomes ready meanwhile may have its records looked at in vain, and is not missed.
        places = self._words.ready_places(partition)
        unready = list(self._words.with_status(partition, NOT_READY_STATUSES))
        suspect = set()
        for place, ready in places.items():
            name = collection_name(place.mode, place.space)
            kept = fingerprints.get(name)
            lacking = kept is None or self._is_outdated(kept) or counted[name] < ready
            if lacking or counted[name] - await self._among(place, kept, unready) < ready:
                suspect.add(place)
        return suspect

    async def _among(self, place: VectorLocation, kept: Fingerprint | None, memory_ids: Sequence[str]) -> int:
        """How many of these memories have a point in a place."""
        return sum(
            [len(await self._hashes(place.mode, kept, ids)) for ids in batches(memory_ids, REEMBEDDING_PAGE_SIZE)]
        )

    def _is_outdated(self, kept: Fingerprint) -> bool:
        """Whether the embedder of a collection makes other vectors today: another file, precision, pooling."""
        # Modes have it by the name of `general` only, which has another model beside it.
        name = GENERAL if kept.embedder == ENGLISH_EMBEDDER else kept.embedder
        like = Mode(name="any", embedder=name, embedding_dim=kept.dim, passage_prefix=kept.passage_prefix)
        try:
            return self._embedders.of(like).fingerprint != kept
        except ModelMissing:
            return False

    async def _ask_missing(self, partition: int, ids: Sequence[str], suspect: set[VectorLocation]) -> int:
        """Ask for those of these memories that have no vector where their record says, or in a space of yesterday."""
        memories = self._records(partition, ids)
        fingerprints = await self._patiently(self._index.spaces)
        wrong: list[Memory] = []
        for place in suspect:
            there = [memory for memory in memories if memory.embedding.place == place]
            kept = fingerprints.get(collection_name(place.mode, place.space))
            hashes = await self._hashes(place.mode, kept, [memory.memory_id for memory in there])
            wrong += [
                one
                for one in there
                if hashes.get(one.memory_id) != one.content_hash
                or self._spaces_at(partition).digest(one) not in (None, one.embedding.space)
            ]
        return await self._ask(wrong)

    async def _hashes(self, mode: str, kept: Fingerprint | None, ids: Sequence[str]) -> Mapping[str, str]:
        """The content hashes in one collection, none where it does not exist."""
        if kept is None or not ids:
            return {}
        return await self._patiently(partial(self._index.hashes, VectorSpace(mode, kept), ids))

    def _records(self, partition: int, ids: Sequence[str]) -> list[Memory]:
        known = [self._memories.get(partition, memory_id) for memory_id in ids]
        return [memory for memory in known if memory is not None]

    async def _ask(self, memories: Sequence[Memory]) -> int:
        """Tell the keeper of a page, when the indexer has done most of what it has."""
        while memories and self._waiting() > MAX_INDEXER_LAG:  # noqa: ASYNC110 - lag is Kafka's, and nothing tells of it
            await asyncio.sleep(INDEXER_POLL_INTERVAL_S)
        sent = []
        for memory in memories:
            event = Embedded(
                memory_id=memory.memory_id,
                content_hash=memory.content_hash,
                mode=memory.mode,
                status="stale",
                at=self._ctx.clock.now(),
            )
            out = event_out(self._ctx.topics.embedded, memory.boundary, event)
            sent.append(await self._ctx.publisher.send(out))
        await await_all(sent)
        await asyncio.sleep(0)
        return len(memories)

    async def _patiently(self, call: Callable[[], Awaitable[Result]]) -> Result:
        return await until_available(call, "vector index", self._ctx.meters)
