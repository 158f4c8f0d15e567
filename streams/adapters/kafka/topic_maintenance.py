"""Background work on a deployment's topics: moves records of added partitions, prunes events, notices deletion."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from datetime import timedelta

import structlog
from aiokafka import TopicPartition
from aiokafka.admin import RecordsToDelete
from aiokafka.errors import KafkaError

from schemas.failures import Unavailable
from schemas.messages.records import Record
from streams.adapters.kafka.clients import committed_offsets, connected_admin, partitions_of_topics
from streams.adapters.kafka.logs import open_reader
from streams.flow.publisher import await_all
from streams.settings import Settings
from streams.topics import MAX_PASS_INTERVAL_S, group_id, topics_with_prefix

log = structlog.get_logger()

WAIT_MS = 1000
"""Time for which the end of an added partition is polled for further records."""

LOOKUP_INTERVAL_S = 10.0
"""Time that a record may lie in a new partition unseen; a lookup takes the broker a millisecond."""

MAX_RECORDS = 100
"""Records moved between two commits."""


BeginRecord = Callable[[Record], Awaitable[Awaitable[object]]]


class MoveAddedPartitions:
    """Moves records from partitions that an operator has added to input topics.

    Enters: the records of partitions beyond the deployment's number. Leaves: the same records, moved, refused or
    dropped by the request pipeline of their topic. Guaranteed: a record counts as read when its copy, its error reply
    or its dead letter is written; if a worker dies before, it is moved again, which changes nothing. Each added
    partition is read by the worker that has the partition of its number modulo the deployment's.
    """

    def __init__(
        self, settings: Settings, pipelines: Mapping[str, BeginRecord], served: Callable[[], Collection[int]]
    ) -> None:
        """`pipelines` has the request pipeline of each input topic, `served` returns this worker's partitions."""
        self._settings = settings
        self._pipelines = pipelines
        self._served = served

    async def run(self) -> None:
        """Look for added partitions and read them, until cancelled."""
        while True:
            try:
                # This worker's partitions beyond the setting: it serves the number modulo the setting.
                async with connected_admin(self._settings) as admin:
                    by_topic = await partitions_of_topics(admin, self._pipelines)
                # After the lookup: the worker's partitions may have changed meanwhile.
                count, served = self._settings.partitions, self._served()
                if added := [
                    (topic, number)
                    for topic, numbers in by_topic.items()
                    for number in numbers
                    if number >= count and number % count in served
                ]:
                    # Assigned manually: the group only stores offsets.
                    async with open_reader(
                        self._settings, added, group_id=f"{group_id(self._settings)}-added"
                    ) as reader:
                        while moved := await reader.poll(MAX_RECORDS, WAIT_MS):
                            records = [record for several in moved.values() for record in several]
                            await await_all([await self._pipelines[record.topic](record) for record in records])
                            await reader.commit()
                        # Even if nothing was moved: Kafka drops the offsets of a group without members a week after
                        # a commit, and old commands would be moved, and executed, once more.
                        await reader.commit()
            except (KafkaError, OSError, Unavailable) as problem:
                log.warning("added partitions could not be read", problem=repr(problem))
            await asyncio.sleep(LOOKUP_INTERVAL_S)


class PruneEvents:
    """Deletes a deployment's own events from Kafka's log when they are handled and old.

    Events carry texts of turns, whose results are in the tables: kept forever, they would outlive a `forget` and take
    twice the disk of the turns. Guaranteed: deletes only records that the workers have handled and committed, and none
    of a topic that clients write to.
    """

    def __init__(self, settings: Settings, kept: timedelta, interval_s: float = MAX_PASS_INTERVAL_S) -> None:
        """`kept` is the time that a handled event stays."""
        self._interval_s = interval_s
        self._settings = settings
        self._kept = kept
        self._topics = topics_with_prefix(settings.topic_prefix).internal_events()

    async def run(self) -> None:
        """Delete repeatedly, until cancelled."""
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                await self.prune()
            except (KafkaError, OSError, Unavailable) as problem:
                log.warning("handled events could not be deleted", problem=repr(problem))

    async def prune(self) -> None:
        """Delete handled, old events. Raises KafkaError, OSError or Unavailable without Kafka."""
        committed = await committed_offsets(self._settings, group_id(self._settings))
        handled = {
            TopicPartition(topic, partition): offset
            for (topic, partition), offset in committed.items()
            if topic in self._topics and offset > 0
        }
        if not handled:
            return
        oldest_kept_ms = round((time.time() - self._kept.total_seconds()) * 1000)
        async with open_reader(self._settings) as reader:
            begins = await reader.begins(handled)
            kept_from = await reader.first_since(handled, oldest_kept_ms)
        ends: dict[TopicPartition, int] = {}
        for partition, offset in handled.items():
            # None: every record is older.
            first_recent = kept_from[partition]
            end = offset if first_recent is None else min(offset, first_recent)
            if end > begins[partition]:
                ends[partition] = end
        if ends:
            async with connected_admin(self._settings) as admin:
                await admin.delete_records({partition: RecordsToDelete(end) for partition, end in ends.items()})
            log.info("handled events deleted", topics=sorted({partition.topic for partition in ends}))


WATCH_INTERVAL_S = 10.0
"""Interval between lookups; each takes the broker a millisecond."""

MISSING_TIMEOUT_S = 60.0
"""Time for which a topic may be missing: metadata of a broker that has just started may lack topics for seconds."""


class MissingTopics:
    """Finds topics that are missing for too long."""

    def __init__(self, topics: Iterable[str], now: Callable[[], float] = time.monotonic) -> None:
        self._topics = frozenset(topics)
        self._now = now
        self._since: dict[str, float] = {}

    def note(self, existing: Collection[str]) -> list[str]:
        """Take one answer of the broker; return the topics missing in all answers of `MISSING_TIMEOUT_S`."""
        now = self._now()
        self._since = {topic: self._since.get(topic, now) for topic in self._topics.difference(existing)}
        return sorted(topic for topic, since in self._since.items() if now - since >= MISSING_TIMEOUT_S)

    def forget(self) -> None:
        """Start over: the broker did not answer."""
        self._since.clear()


class WatchTopics:
    """Ends a worker whose own topics were deleted: its group would assign nothing; a new start creates them again.

    Guaranteed: it ends after a minute in which every answer of the broker lacked a topic; a broker that does not answer
    proves nothing.
    """

    def __init__(self, settings: Settings, topics: Iterable[str], on_missing: Callable[[], None]) -> None:
        """`on_missing` ends the process."""
        self._settings = settings
        self._topics = frozenset(topics)
        self._on_missing = on_missing

    async def run(self) -> None:
        """Check repeatedly, until cancelled or `on_missing` has returned."""
        missing = MissingTopics(self._topics)
        while True:
            await asyncio.sleep(WATCH_INTERVAL_S)
            try:
                async with connected_admin(self._settings) as admin:
                    partitions = await partitions_of_topics(admin, self._topics)
            except (KafkaError, OSError) as problem:
                log.warning("topics could not be looked up", problem=repr(problem))
                missing.forget()
            else:
                if gone := missing.note([topic for topic, numbers in partitions.items() if numbers]):
                    log.error("topics of the deployment are gone, a new start creates them again", topics=gone)
                    self._on_missing()
                    return
