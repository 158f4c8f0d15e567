"""What happens when partitions arrive at this worker, after their tables are recovered and before events flow.

The word index is compared with what the group has committed: where another worker came further, or the disk is
new, it is made again from the table. What it still has and the table has not, since a worker was killed between the
two, leaves it, and the indexer is told.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

import structlog

from agents.removed import put_right_beside, removed_but_found
from agents.rules.partitioning import partition_of
from agents.word_port import WordIndex
from schemas.memories import Memory
from streams.flow.steps import event_out
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


class Arrival:
    """Makes a worker ready for the partitions that it has got."""

    def __init__(
        self,
        memories: AllMemories,
        committed: Committed,
        around: Surroundings,
    ) -> None:
        self._memories = memories
        self._words: WordIndex = around.words
        self._committed = committed
        self._around = around

    async def prepare(self, partitions: Collection[int]) -> None:
        """Open the word index of these partitions, made again where it is behind."""
        names = self._around.topics
        topics = (names.turns, names.embedded, names.understood, names.changes, names.consolidated)
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
            await self._clear(partition)
        for partition in partitions:
            self._around.progress.advance(partition, self._words.applied(partition).get(topics[0], 0))

    async def _clear(self, partition: int) -> None:
        """Tell of what was removed and is still in the words, and take it out."""
        is_behind = False
        for number, event in enumerate(removed_but_found(self._around.memories, self._words, partition)):
            if event is not None:
                is_behind = True
                # In this partition, whatever its boundary is: only the number counts for who reads it.
                out = replace(event_out(self._around.topics.remembered, "", event), partition=partition)
                await (await self._around.publisher.send(out))
                self._words.remove(partition, event.memory_id)
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        beside = put_right_beside(self._around.memories, self._words, partition) if is_behind else ()
        for number, _ in enumerate(beside):
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)

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
