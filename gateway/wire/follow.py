"""Follow topics without a consumer group: every record of every partition, from the beginning or from now on.

Guaranteed: starts without a broker or a topic, and begins as soon as both are there; an outage of the broker delays
records and loses none. Records arrive in the order of their partition, in batches between which others get their turn.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from aiokafka.errors import KafkaError
from modestream_client.kafka.connection import MAX_RECORD_BYTES
from modestream_client.kafka.log_reader import LogReader, TopicAndPartition, open_log_reader
from modestream_client.kafka.security import KafkaSecurity, connection_options

from gateway.connection_settings import ConnectionSettings
from schemas.messages.records import Record

log = logging.getLogger(__name__)

RETRY_S = 1.0
"""The pause between two attempts to begin."""

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

    @property
    def connection(self) -> dict[str, Any]:
        """The arguments of aiokafka's clients. Raises ValueError or OSError for a password or file of no use."""
        return {"bootstrap_servers": self.bootstrap, **connection_options(self.security)}

    def open_reader(self) -> AbstractAsyncContextManager[LogReader]:
        """Connect to read topics. Raises KafkaError or OSError."""
        return open_log_reader(self.connection, max_partition_fetch_bytes=2 * MAX_RECORD_BYTES)


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
        async with self._cluster.open_reader() as reader:
            ends = await self._assign(reader)
            while True:
                if not self.is_caught_up.is_set() and _has_reached(reader, ends):
                    self.is_caught_up.set()
                for (topic, _), records in (await reader.poll(MAX_BATCH)).items():
                    self._handle([replace(record, topic=topic.removeprefix(self._prefix)) for record in records])
                await asyncio.sleep(0)

    async def _assign(self, reader: LogReader) -> dict[TopicAndPartition, int]:
        """Assign all partitions; return the ends that were there."""
        partitions = await reader.subscribe([self._prefix + topic for topic in self._topics])
        ends = await reader.ends(partitions)
        starts = ends if self._start == "now" else await reader.begins(partitions)
        if isinstance(self._start, int):
            starts = {partition: max(at, ends[partition] - self._start) for partition, at in starts.items()}
        reader.seek(starts)
        if self._on_begin is not None:
            self._on_begin({(topic.removeprefix(self._prefix), number): at for (topic, number), at in starts.items()})
        return ends


def _has_reached(reader: LogReader, ends: dict[TopicAndPartition, int]) -> bool:
    return all((reader.position(partition) or 0) >= end for partition, end in ends.items())
