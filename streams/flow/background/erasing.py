"""Erases texts that nothing refers to any more from the files of worker and broker, within a time.

Enters: partitions in which turns were forgotten, replaced or archived. Leaves: stores without the former texts, and one
record more in each log that held them: Kafka deletes and compacts no segment that is still written to, so a log that
nothing else is written to would keep them for ever. Whatever was left by a killed process is erased by the next pass.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Protocol

import structlog

from schemas.failures import Unavailable
from schemas.messages.records import Outgoing
from streams.flow.publisher import Publisher, await_all
from streams.observability.metrics import Meters
from streams.partition.commit import PartitionCommits
from streams.topics import Topics
from streams.wire.fillers import FILLER_KEY, filler

TRUNCATE_TRIES = 10

TRUNCATE_PAUSE_S = 0.2

METER = "erasure"
"""The label of the metric that says when it was last done."""

log = structlog.get_logger()


class ErasableWords(Protocol):
    """The lexical index, whose file beside the database holds what was deleted."""

    def truncate(self, partition: int) -> None:
        """Empty the log of the file. Raises Unavailable while it is read or written."""


class EraseTexts:
    """Erases in the partitions of one worker."""

    def __init__(
        self,
        topics: Topics,
        publisher: Publisher,
        changelogs: Collection[str],
        words: ErasableWords,
        commit: PartitionCommits,
        meters: Meters,
    ) -> None:
        self._topics = topics
        self._publisher = publisher
        self._changelogs = changelogs
        self._words = words
        self._commit = commit
        self._meters = meters

    async def run(self, served: Callable[[], Collection[int]], interval_s: float) -> None:
        """Erase in the served partitions again and again, until cancelled."""
        self._meters.watch_retention(METER, interval_s)
        while True:
            try:
                for partition in served():
                    await self.erase(partition)
                self._meters.retained(METER)
            except Unavailable as problem:
                log.warning("texts could not be erased", problem=str(problem))
            except Exception:
                # A partition may leave while its stores are compacted: its new owner goes on.
                log.exception("erasing texts failed")
            await asyncio.sleep(interval_s)

    async def erase(self, partition: int) -> None:
        """Erase in one partition. Raises Unavailable while its lexical index is in use."""
        logs = (self._topics.turns, *sorted(self._topics.internal_events()))
        # A tombstone: in a compacted topic the last record of each key stays.
        archive = Outgoing(self._topics.archive, FILLER_KEY.encode(), None, partition=partition)
        await await_all(
            [await self._publisher.send(out) for out in [*(filler(topic, partition) for topic in logs), archive]]
        )
        for changelog in self._changelogs:
            # A deletion of a row that does not exist: Kafka compacts what is before it.
            self._commit.write(partition, changelog, FILLER_KEY.encode(), None)
        await self._truncate_words(partition)

    async def _truncate_words(self, partition: int) -> None:
        for _ in range(TRUNCATE_TRIES - 1):
            try:
                await self._commit.commit([partition])
                self._words.truncate(partition)
            except Unavailable:
                await asyncio.sleep(TRUNCATE_PAUSE_S)
            else:
                return
        self._words.truncate(partition)
