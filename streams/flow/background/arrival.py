"""What happens when partitions arrive at this worker, after their tables are recovered and before events flow.

The word index is compared with what the group has committed: where another worker came further, or the disk is
new, it is made again from the table. What it still has and the table has not, since a worker was killed between the
two, leaves it, and the indexer is told. A word index that is made again knows nothing of the kind: where a command was
cut off, the indexer is told of all that it may have moved or forgotten without telling.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace

import structlog

from agents.memory.recovery import find_removed_but_indexed, repair_superseded_flags
from agents.rules.index.lexical_document import LexicalDocument
from agents.rules.memory.embedding_status import may_need_resend
from schemas.events import Forgotten, Remembered
from schemas.failures import Unavailable
from streams.flow.requests.events import event_out
from streams.flow.support.awaiting import await_all
from streams.flow.worker_context import WorkerContext
from streams.wire.partitioning import partition_of

CommittedOffsets = Callable[[], Awaitable[Mapping[tuple[str, int], int]]]
"""The offsets that the group has committed, by topic and partition."""

ChangesEndOffset = Callable[[int], Awaitable[int]]
"""The offset after the last change that was written to a partition; raises Unavailable."""

YIELD_EVERY = 200
"""Records between two pauses for the event loop, so that heartbeats and liveness go on."""

log = structlog.get_logger()


class PartitionPreparer:
    """Makes a worker ready for the partitions that it has got."""

    def __init__(self, committed: CommittedOffsets, changes_end: ChangesEndOffset, ctx: WorkerContext) -> None:
        self._committed = committed
        self._changes_end = changes_end
        self._memories = ctx.stores.memories
        self._words = ctx.stores.words
        self._ctx = ctx

    async def prepare(self, partitions: Collection[int]) -> None:
        """Open the word index of these partitions, made again where it is behind."""
        names = self._ctx.topics
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
            self._ctx.progress.advance(partition, self._words.applied(partition).get(topics[0], 0))

    async def _clear(self, partition: int) -> None:
        """Tell of what was removed and is still in the words, and take it out."""
        is_behind, stores = False, self._ctx.stores.at(partition)
        for number, event in enumerate(find_removed_but_indexed(stores.memories, stores.words)):
            if event is not None:
                is_behind = True
                await (await self._tell(event, partition))
                self._words.remove(partition, event.memory_id)
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        beside = repair_superseded_flags(stores.memories, stores.words) if is_behind else ()
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
        changing = await asyncio.gather(*(self._is_changing(partition, committed) for partition in partitions))
        cut_off = [partition for partition, is_changing in zip(partitions, changing, strict=True) if is_changing]
        await await_all([*await self._put_all(partitions, cut_off), *await self._tell_of_gone(cut_off)])
        for partition in partitions:
            for topic in topics:
                self._words.set_applied(partition, topic, committed.get((topic, partition), 0))
            self._words.commit(partition)

    async def _is_changing(self, partition: int, committed: Mapping[tuple[str, int], int]) -> bool:
        """Whether a change is not finished, or may not be."""
        try:
            return await self._changes_end(partition) > committed.get((self._ctx.topics.changes, partition), 0)
        except Unavailable:
            return True

    async def _put_all(self, partitions: Collection[int], cut_off: Collection[int]) -> list[Awaitable[object]]:
        """Write the words of every record; returns what is to be awaited of those that the indexer is told of."""
        told = []
        for number, memory in enumerate(self._memories.all()):
            partition = partition_of(memory.boundary.encode(), self._ctx.partitions)
            if partition in partitions:
                self._words.put(partition, LexicalDocument(memory))
                if partition in cut_off and may_need_resend(memory):
                    told.append(await self._tell(Remembered(memory=memory), partition))
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        return told

    async def _tell_of_gone(self, partitions: Collection[int]) -> list[Awaitable[object]]:
        """Have the vectors removed of all that is no more; returns what is to be awaited."""
        told = []
        for number, (memory_id, place) in enumerate(self._memories.tombstones() if partitions else ()):
            event = Forgotten(memory_id=memory_id, places=(place,))
            for partition in partitions:
                if self._memories.is_removed(partition, memory_id):
                    told += [await self._tell(event, partition)]
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        return told

    async def _tell(self, event: Remembered | Forgotten, partition: int) -> Awaitable[object]:
        """Tell the indexer."""
        # In this partition, whatever its boundary is: only the number counts for who reads it.
        out = replace(event_out(self._ctx.topics.remembered, "", event), partition=partition)
        return await self._ctx.publisher.send(out)
