"""Follow topics without a consumer group: every record of every partition, from the beginning or from now on.

Guaranteed: starts without a broker or a topic, and begins as soon as both are there; an outage of the broker delays
records and loses none. Records arrive in the order of their partition, in batches between which others get their turn.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError
from modestream_client.kafka.connection import MAX_RECORD_BYTES
from modestream_client.kafka.own_clients import OwnConsumer
from modestream_client.kafka.security import KafkaSecurity, connection_options

from gateway.connection_settings import ConnectionSettings
from schemas.messages.records import Record

log = logging.getLogger(__name__)

RETRY_S = 1.0
"""The pause between two attempts to begin."""

METADATA_S = 0.1
"""The pause between two looks at the assignment."""

MAX_BATCH = 200
"""Records that are handled without a pause: some milliseconds."""


class Cluster(NamedTuple):
    """Where the topics are: addresses joined by commas, the prefix of their names, TLS and SASL."""

    bootstrap: str
    topic_prefix: str
    security: KafkaSecurity | None = None

    @classmethod
    def of(cls, settings: ConnectionSettings) -> "Cluster":
        """Return that of the settings."""
        return cls(settings.bootstrap, settings.topic_prefix, settings.kafka_security)


Handle = Callable[[Sequence[Record]], None]
"""Takes records; their topics have no prefix."""
Begin = Callable[[dict[tuple[str, int], int]], None]
"""Takes the offset of the first record to come, by topic and partition."""


class Follower:
    """Reads topics until it is cancelled."""

    def __init__(
        self,
        cluster: Cluster,
        topics: Sequence[str],
        start: Literal["beginning", "now"] | int,
        handle: Handle,
        on_begin: Begin | None = None,
    ) -> None:
        """`topics` have no prefix; `handle` gets every batch, and must not raise.

        A number as `start`: that many records before the end of each partition. After an outage it starts there again.
        """
        self._cluster = cluster
        self._prefix = cluster.topic_prefix
        self._topics = topics
        self._start = start
        self._handle = handle
        self._on_begin = on_begin
        self.is_caught_up = asyncio.Event()
        """Set once all that was there at the start has been handled."""

    async def run(self) -> None:
        """Follow for ever."""
        while True:
            try:
                await self._follow()
            except (KafkaError, OSError) as error:
                log.warning("can't follow %s: %s", ", ".join(self._topics), error)
            await asyncio.sleep(RETRY_S)

    async def _follow(self) -> None:
        consumer = OwnConsumer(
            bootstrap_servers=self._cluster.bootstrap,
            **connection_options(self._cluster.security),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=2 * MAX_RECORD_BYTES,
        )
        try:
            await consumer.start()
            ends = await self._assign(consumer)
            await self._read(consumer, ends)
        finally:
            await consumer.stop()

    async def _assign(self, consumer: AIOKafkaConsumer) -> dict[TopicPartition, int]:
        """Assign all partitions; return the ends that were there."""
        names = [self._prefix + topic for topic in self._topics]
        # Asked for by name, a topic that is not there yet would be looked for again only after minutes.
        while not set(names) <= await consumer.topics():  # noqa: ASYNC110
            await asyncio.sleep(RETRY_S)
        consumer.subscribe(names)
        # Without a group all partitions of a topic are assigned as soon as it is there; nothing tells of that.
        while {place.topic for place in consumer.assignment()} != set(names):  # noqa: ASYNC110
            await asyncio.sleep(METADATA_S)
        found = sorted(consumer.assignment())
        ends: dict[TopicPartition, int] = await consumer.end_offsets(found)
        starts = ends if self._start == "now" else await consumer.beginning_offsets(found)
        if isinstance(self._start, int):
            starts = {place: max(at, ends[place] - self._start) for place, at in starts.items()}
        for place, offset in starts.items():
            consumer.seek(place, offset)
        if self._on_begin is not None:
            self._on_begin({(self._without_prefix(place.topic), place.partition): at for place, at in starts.items()})
        return ends

    async def _read(self, consumer: AIOKafkaConsumer, ends: dict[TopicPartition, int]) -> None:
        while True:
            if not self.is_caught_up.is_set() and await self._has_reached(consumer, ends):
                self.is_caught_up.set()
            batches = await consumer.getmany(timeout_ms=500, max_records=MAX_BATCH)
            for place, records in batches.items():
                topic = self._without_prefix(place.topic)
                self._handle([record_of(topic, one) for one in records])
            await asyncio.sleep(0)

    async def _has_reached(self, consumer: AIOKafkaConsumer, ends: dict[TopicPartition, int]) -> bool:
        return all([await consumer.position(place) >= end for place, end in ends.items()])

    def _without_prefix(self, topic: str) -> str:
        return topic.removeprefix(self._prefix)


def record_of(topic: str, read: ConsumerRecord[bytes, bytes]) -> Record:
    """Return a record as Kafka's consumer reads it, of a topic without its prefix."""
    return Record(topic, read.partition, read.offset, read.timestamp, read.key, read.value, tuple(read.headers))
