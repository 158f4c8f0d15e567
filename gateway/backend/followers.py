"""Follow topics without a consumer group: every record of every partition, from the beginning or from now on.

Guaranteed: starts without a broker or a topic, and begins as soon as both are there; an outage of the broker delays
records and loses none. Records arrive in the order of their partition, in batches between which other tasks run.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import Context
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from aiokafka.errors import KafkaError
from modestream_client.kafka.connection import MAX_RECORD_BYTES
from modestream_client.kafka.log_reader import LogReader, open_log_reader
from modestream_client.kafka.security import KafkaSecurity, connection_options

from gateway.connection_settings import ConnectionSettings
from gateway.service.boundaries import Boundaries
from gateway.service.calls import unavailable
from gateway.service.events import TOPIC as RECEIPTS_TOPIC
from gateway.service.events import TOPICS, Feed, Receipts
from gateway.service.runs import TOPIC as RUNS_TOPIC
from gateway.service.runs import Runs
from schemas.messages.records import Record

log = logging.getLogger(__name__)

RETRY_S = 1.0
"""Pause between two attempts to start."""

BEGIN_S = 8.0
"""Seconds that the first listener waits for the topics of events."""

MAX_BATCH = 200
"""Records handled without a pause: a few milliseconds."""


class Cluster(NamedTuple):
    """Location of the topics: addresses joined by commas, the prefix of their names, TLS and SASL."""

    bootstrap: str
    topic_prefix: str
    security: KafkaSecurity | None = None

    @classmethod
    def of(cls, settings: ConnectionSettings) -> "Cluster":
        return cls(settings.bootstrap, settings.topic_prefix, settings.kafka_security)

    @property
    def connection(self) -> dict[str, Any]:
        """Return the arguments of aiokafka's clients. Raises ValueError or OSError for an unusable password or file."""
        return {"bootstrap_servers": self.bootstrap, **connection_options(self.security)}

    def open_reader(self) -> AbstractAsyncContextManager[LogReader]:
        """Connect to read topics. Raises KafkaError or OSError."""
        return open_log_reader(self.connection, max_partition_fetch_bytes=2 * MAX_RECORD_BYTES)


Handle = Callable[[Sequence[Record]], None]
"""Takes records; their topics have no prefix."""
Begin = Callable[[dict[tuple[str, int], int]], None]
"""Takes the next offset of each followed partition, by topic and partition."""


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
        """Set once all records that were there at the start have been handled."""

    async def run(self) -> None:
        while True:
            try:
                await self._follow()
            except (KafkaError, OSError) as error:
                log.warning("can't follow %s: %s", ", ".join(self._topics), error)
            await asyncio.sleep(RETRY_S)

    async def _follow(self) -> None:
        async with self._cluster.open_reader() as reader:
            partitions = await reader.subscribe([self._prefix + topic for topic in self._topics])
            ends = await reader.ends(partitions)
            starts = ends if self._start == "now" else await reader.begins(partitions)
            if isinstance(self._start, int):
                starts = {partition: max(at, ends[partition] - self._start) for partition, at in starts.items()}
            reader.seek(starts)
            if self._on_begin is not None:
                self._on_begin({(topic.removeprefix(self._prefix), part): at for (topic, part), at in starts.items()})
            while True:
                # Before the poll: empty partitions are caught up with at once.
                if not self.is_caught_up.is_set() and all((reader.position(at) or 0) >= ends[at] for at in ends):
                    self.is_caught_up.set()
                for (topic, _), records in (await reader.poll(MAX_BATCH)).items():
                    self._handle([replace(record, topic=topic.removeprefix(self._prefix)) for record in records])
                await asyncio.sleep(0)


class Feeds:
    """The followers of one gateway: boundaries from the start, others from their first request on."""

    def __init__(self, cluster: Cluster, boundaries: Boundaries, feed: Feed) -> None:
        self.runs = runs = Runs(lambda: self._begin(self._runs, self._runs.is_caught_up), boundaries.fields)
        self.receipts = receipts = Receipts(lambda: self._begin(self._receipts, self._receipts.is_caught_up))
        self._begun = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._following: set[Follower] = set()

        def begin(starts: dict[tuple[str, int], int]) -> None:
            feed.begin(starts)
            self._begun.set()

        def take_boundaries(records: Sequence[Record]) -> None:
            for record in records:
                boundaries.apply(record.key, record.value)
                if record.value is None and record.key is not None:
                    runs.forget(record.key)

        def take_events(records: Sequence[Record]) -> None:
            for record in records:
                feed.take(record.topic, record.partition, record.offset, record.timestamp_ms, record.key, record.value)

        def take_runs(records: Sequence[Record]) -> None:
            for record in records:
                runs.apply(record.value)

        self._boundaries = Follower(cluster, ["boundaries"], "beginning", take_boundaries)
        self._events = Follower(cluster, TOPICS, "now", take_events, begin)
        self._runs = Follower(cluster, [RUNS_TOPIC], "beginning", take_runs)
        self._receipts = Follower(cluster, [RECEIPTS_TOPIC], "beginning", receipts.take)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._follow(self._boundaries)
        try:
            yield
        finally:
            for task in self._tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def begin_events(self) -> None:
        """Follow events, if not yet started. Raises Refused, `unavailable`, on failure."""
        await self._begin(self._events, self._begun)

    async def _begin(self, follower: Follower, has_begun: asyncio.Event) -> None:
        self._follow(follower)
        try:
            async with asyncio.timeout(BEGIN_S):
                await has_begun.wait()
        except TimeoutError:
            raise unavailable() from None

    def _follow(self, follower: Follower) -> None:
        if follower not in self._following:
            self._following.add(follower)
            # An empty context: it outlives the request that started it, and so do its log lines.
            self._tasks.append(asyncio.create_task(follower.run(), context=Context()))
