"""What happens when partitions arrive at this worker, after their tables are recovered and before events flow.

The word index is compared with what the group has committed: where another worker came further, or the disk is
new, it is made again from the table. Then, beside the events, the vector index is compared with the records: those
whose vector is missing, or lies in another space, are told to the keeper as `stale`, and are embedded again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Protocol

import structlog

from agents.ports import VectorIndex
from agents.rules.partitioning import partition_of
from agents.word_port import WordIndex
from schemas.events import Embedded
from schemas.memories import Memory
from schemas.modes import VectorSpace
from schemas.records import Outgoing
from streams.flow.patience import until_available
from streams.flow.surroundings import Surroundings

Committed = Callable[[], Awaitable[Mapping[tuple[str, int], int]]]
"""The offsets that the group has committed, by topic and partition."""

YIELD_EVERY = 200
"""Records between two pauses for the event loop, so that heartbeats and liveness go on."""

log = structlog.get_logger()


class AllMemories(Protocol):
    """The records that are here."""

    def all(self) -> Iterator[Memory]:
        """Every record of the partitions that are here."""
        ...

    def get(self, partition: int, memory_id: str) -> Memory | None:
        """The record, or None."""
        ...


class Arrival:
    """Makes a worker ready for the partitions that it has got."""

    def __init__(
        self,
        memories: AllMemories,
        index: VectorIndex,
        space: Callable[[str], VectorSpace],
        committed: Committed,
        around: Surroundings,
    ) -> None:
        self._memories = memories
        self._words: WordIndex = around.words
        self._index = index
        self._space = space
        self._committed = committed
        self._around = around

    async def prepare(self, partitions: Collection[int]) -> None:
        """Open the word index of these partitions, made again where it is behind."""
        topics = (self._around.topics.turns, self._around.topics.embedded)
        committed = await self._committed()
        behind = []
        for partition in partitions:
            self._words.open(partition)
            applied = self._words.applied(partition)
            if any(applied.get(topic, 0) < committed.get((topic, partition), 0) for topic in topics):
                behind.append(partition)
        if behind:
            await self._rebuild(behind, committed, topics)
        for partition in partitions:
            self._around.progress.advance(partition, self._words.applied(partition).get(topics[0], 0))

    async def _rebuild(
        self, partitions: Collection[int], committed: Mapping[tuple[str, int], int], topics: Iterable[str]
    ) -> None:
        log.info("making the word index again from the table", partitions=sorted(partitions))
        for partition in partitions:
            self._words.drop(partition)
            self._words.open(partition)
        for number, memory in enumerate(self._memories.all()):
            partition = partition_of(memory.boundary.encode(), self._around.partitions)
            if partition in partitions:
                self._words.put(partition, memory)
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        for partition in partitions:
            for topic in topics:
                self._words.set_applied(partition, topic, committed.get((topic, partition), 0))
            self._words.commit(partition)

    async def reconcile(self, partitions: Collection[int]) -> int:
        """Ask for the vectors that the records say are there and the index has not; returns how many."""
        asked = 0
        for partition in partitions:
            ready = list(self._words.with_status(partition, ("ready",)))
            if await self._matches(partition, len(ready)):
                continue
            for start in range(0, len(ready), YIELD_EVERY):
                asked += await self._ask_again(partition, ready[start : start + YIELD_EVERY])
        if asked:
            log.info("vectors are missing and made again", memories=asked)
        return asked

    async def _matches(self, partition: int, ready: int) -> bool:
        """Whether the numbers agree: a hint that is enough, as records and points are written one for one."""
        space = self._space("general")
        if self._words.count_ready(partition, space.fingerprint.digest) != ready:
            return False
        count = partial(self._index.count, space, partition)
        counted = await until_available(count, "vector index", self._around.meters)
        return counted >= ready

    async def _ask_again(self, partition: int, memory_ids: list[str]) -> int:
        known = [self._memories.get(partition, memory_id) for memory_id in memory_ids]
        memories = [memory for memory in known if memory is not None]
        asked = 0
        for space in {self._space(memory.mode) for memory in memories}:
            ids = [memory.memory_id for memory in memories if memory.mode == space.mode]
            hashes = partial(self._index.hashes, space, ids)
            there = await until_available(hashes, "vector index", self._around.meters)
            for memory in memories:
                found = there.get(memory.memory_id) == memory.content_hash
                if memory.mode == space.mode and not (found and memory.embedding.space == space.fingerprint.digest):
                    await self._stale(memory, space)
                    asked += 1
        return asked

    async def _stale(self, memory: Memory, space: VectorSpace) -> None:
        event = Embedded(
            memory_id=memory.memory_id,
            content_hash=memory.content_hash,
            status="stale",
            space=space.fingerprint.digest,
            at=self._around.clock.now(),
        )
        value = event.model_dump_json(by_alias=True).encode()
        out = Outgoing(self._around.topics.embedded, memory.boundary.encode(), value)
        await (await self._around.publisher.send(out))
