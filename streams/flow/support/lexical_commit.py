"""Progress and commits of the lexical index: what `Remember` has applied, made durable before acknowledgements."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from streams.flow.stores.tables import LexicalStore
from streams.flow.support.backoff import until_available
from streams.flow.support.interrupted_words import InterruptedWords
from streams.flow.support.records_under_way import RecordsUnderWay
from streams.observability.metrics import Meters

COMMIT_INTERVAL_S = 0.05
"""Between two commits of the lexical index; acknowledgements wait for them, readers do not."""

STORAGE_TIMEOUT_S = 30.0
"""How long a write to the local disk is retried. A full disk may be cleared; a broken one needs a restart."""


class LexicalCommit:
    """Commits the lexical index of partitions, except while one has writes with unpublished events."""

    def __init__(self, words: LexicalStore, meters: Meters, interrupted: InterruptedWords) -> None:
        self.interrupted = interrupted
        self._words = words
        self._meters = meters
        self._locks: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._under_way: defaultdict[int, RecordsUnderWay] = defaultdict(RecordsUnderWay)

    def hold(self, partition: int) -> asyncio.Lock:
        """Return the lock that delays commits of a partition.

        A change holds it from its writes until their events are published: if it is redelivered, the committed index
        shows what it has not finished.
        """
        return self._locks[partition]

    def arrive(self, partition: int) -> None:
        """Forget the records of a partition that were being handled when it left: they are delivered again."""
        self._under_way[partition].abandon()

    def begin(self, partition: int) -> int:
        """Return the number of a record of a partition whose handling begins."""
        return self._under_way[partition].begin()

    def finish(self, partition: int, number: int) -> None:
        """Note that a record is handled: its writes and its events are stored."""
        self._under_way[partition].finish(number)

    def applied(self, partition: int, topic: str) -> int:
        """Return the next offset of a topic that is not applied."""
        return self._words.applied(partition).get(topic, 0)

    def set_applied(self, partition: int, topic: str, next_offset: int) -> None:
        """Count all records before an offset as applied; durable with the next commit."""
        self._words.set_applied(partition, topic, next_offset)

    async def commit(self, partitions: Sequence[int]) -> None:
        """Make the index of these partitions durable. Raises Unavailable after `STORAGE_TIMEOUT_S`."""

        async def commit() -> None:
            for partition in set(partitions):
                async with self._locks[partition]:
                    await self.interrupted.complete(partition)
                    self._words.commit(partition)
                    if self._under_way[partition].are_earlier_finished():
                        self._words.rotate_unfinished(partition)

        await until_available(commit, "storage", self._meters, at_most_s=STORAGE_TIMEOUT_S)
