"""Move old turns from their log to the archive, the last record of each by memory id; erase deleted texts from logs.

Archiving enters: the log of turns, as far as it is handled, committed and older than it is kept. Leaves: those turns in
the archive, and the log without them. Guaranteed: a turn is deleted from the log only after the archive has it and says
so, whenever this process is killed; what a killed one has archived is archived again, which changes nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta
from typing import Protocol

import structlog

from agents.ports.clock import Clock
from schemas.failures import Unavailable
from schemas.messages.records import Outgoing
from schemas.moments import milliseconds_of
from streams.flow.publisher import Publisher, await_all
from streams.flow.turns_log import ArchivedTurns, TurnsHistory
from streams.observability.metrics import Meters
from streams.partition.commit import PartitionCommits
from streams.topics import Topics
from streams.wire.archived_turns import archived_position, original_turn
from streams.wire.dead_letters import FILLER_KEY, filler

YIELD_EVERY = 20
"""Records between two pauses for the event loop: some milliseconds."""

PAGE_PAUSE_S = 0.05
"""The pause after each page, so that an archive that is filled for the first time takes half of the time at most."""

METER = "archive"
"""The label of the metric that says when it was last done."""

log = structlog.get_logger()


class ArchiveTurns:
    """Archives the partitions of one worker."""

    def __init__(
        self,
        history: TurnsHistory,
        archived: ArchivedTurns,
        publisher: Publisher,
        topic: str,
        clock: Clock,
        meters: Meters,
        *,
        kept: timedelta,
        pause_s: float = PAGE_PAUSE_S,
    ) -> None:
        """`topic` is the archive; `kept` is how long a turn stays in the log, `pause_s` that after each page."""
        self._pause_s = pause_s
        self._history = history
        self._archived = archived
        self._publisher = publisher
        self._topic = topic
        self._clock = clock
        self._meters = meters
        self._kept = kept

    async def run(self, served: Callable[[], Collection[int]], interval_s: float) -> None:
        self._meters.watch_retention(METER, interval_s)
        checked: set[int] = set()
        while True:
            try:
                partitions = served()
                checked &= {*partitions}
                for partition in partitions:
                    if partition not in checked:
                        await self.redact(partition)
                        checked.add(partition)
                    await self.move(partition)
                self._meters.retained(METER)
            except Unavailable as problem:
                log.warning("old turns could not be archived", problem=str(problem))
            except Exception:
                # A partition may leave while its rows are read: its new owner goes on.
                log.exception("archiving old turns failed")
            await asyncio.sleep(interval_s)

    async def redact(self, partition: int) -> None:
        """Replace archived turns that were forgotten without the archive being told. Raises Unavailable."""
        offset, end = 0, await self._history.archive_end(partition)
        left: dict[bytes, Outgoing] = {}
        while offset < end:
            records, offset = await self._history.read_archive(partition, offset)
            for number, record in enumerate(records):
                left.pop(record.key or b"", None)
                original = original_turn(record, "")
                if original is not None and (out := self._archived.redacted(original)) is not None:
                    left[record.key or b""] = out
                if number % YIELD_EVERY == 0:
                    await asyncio.sleep(0)
            await asyncio.sleep(self._pause_s)
        await await_all([await self._publisher.send(out) for out in left.values()])

    async def move(self, partition: int) -> None:
        """Archive a partition's old turns, then delete them from the log. Raises Unavailable."""
        begin = await self._history.begin(partition)
        archived = max(await self._history.archived(partition), begin)
        # The end of what is handled and old.
        handled = await self._history.handled(partition)
        kept = await self._history.first_since(partition, milliseconds_of(self._clock.now() - self._kept))
        end = handled if kept is None else min(handled, kept)
        if end > archived:
            offset = archived
            count = 0
            while offset < end:
                # Archive some turns, and wait until they are written.
                records, following = await self._history.read(partition, offset)
                writes: list[Awaitable[object]] = []
                for number, record in enumerate(records):
                    if record.offset < end and (out := self._archived.of(record)) is not None:
                        writes.append(await self._publisher.send(out))
                    if number % YIELD_EVERY == 0:
                        await asyncio.sleep(0)
                await await_all(writes)
                written, offset = (len(writes), min(following, end))
                count += written
                # When its turns are written, never before: what this names is deleted from the log.
                await (await self._publisher.send(archived_position(self._topic, partition, offset)))
                self._meters.turns_archived(written)
                await asyncio.sleep(self._pause_s)
            log.info("old turns archived", partition=partition, before=end, archived=count)
            archived = end
        if archived > begin:
            await self._history.delete_before(partition, archived)
            log.info("archived turns deleted from the log", partition=partition, before=archived)


# Erases texts that nothing refers to any more from the files of worker and broker, within a time.
#
# Enters: partitions in which turns were forgotten, replaced or archived. Leaves: stores without the former texts, and
# one record more in each log that held them: Kafka deletes and compacts no segment that is still written to, so a log
# that nothing else is written to would keep them for ever. Whatever was left by a killed process is erased by the next
# pass.

TRUNCATE_TRIES = 10

TRUNCATE_PAUSE_S = 0.2

ERASURE_METER = "erasure"
"""The label of the metric that says when it was last done."""


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
        self._meters.watch_retention(ERASURE_METER, interval_s)
        while True:
            try:
                for partition in served():
                    await self.erase(partition)
                self._meters.retained(ERASURE_METER)
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
        for _ in range(TRUNCATE_TRIES - 1):
            try:
                await self._commit.commit([partition])
                self._words.truncate(partition)
            except Unavailable:
                await asyncio.sleep(TRUNCATE_PAUSE_S)
            else:
                return
        self._words.truncate(partition)
