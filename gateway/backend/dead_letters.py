"""The topic of dead letters over Kafka: followed from the first page on, read at positions, replayed from.

Guaranteed: the last letters of every partition are in the list once `begin` has returned; published records are
acknowledged by all replicas before `publish` returns.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import Context
from dataclasses import replace

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from modestream_client.kafka.connection import MAX_RECORD_BYTES
from modestream_client.kafka.log_reader import LogReader
from modestream_client.kafka.own_clients import OwnProducer

from gateway.backend.followers import Cluster, Follower
from gateway.service.calls import unavailable
from gateway.service.dead_letters import MAX_LETTERS, DeadLetterList, LetterPosition, read_letter
from schemas.messages.records import Outgoing, Record

log = logging.getLogger(__name__)

TOPIC = "dead-letters"

BEGIN_S = 8.0
"""Seconds that the first page waits for the existing letters."""

READ_MS = 5000
"""Time limit for reading one record; none arrives if its offset no longer exists at the end of the log."""


class KafkaDeadLetters:
    """Implements `gateway.service.dead_letters.DeadLetterTopic`."""

    def __init__(
        self, cluster: Cluster, letters: DeadLetterList, boundary_fields: BoundaryFields = USER_BOUNDARY
    ) -> None:
        self.topic_prefix = cluster.topic_prefix
        self.boundary_fields = boundary_fields
        self._cluster = cluster

        def take(records: Sequence[Record]) -> None:
            for record in records:
                letters.take(read_letter(record, cluster.topic_prefix, boundary_fields))

        self._follower = Follower(cluster, [TOPIC], MAX_LETTERS, take)
        self._following: asyncio.Task[None] | None = None
        self._producer: AIOKafkaProducer | None = None
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Stop background tasks when the block ends."""
        try:
            yield
        finally:
            if self._following is not None:
                self._following.cancel()
                with suppress(asyncio.CancelledError):
                    await self._following
            if self._producer is not None:
                await self._producer.stop()

    async def begin(self) -> None:
        """Follow the topic; return once all existing letters are in the list."""
        if self._following is None:
            # An empty context: it outlives the request that started it, and so do its log lines.
            self._following = asyncio.create_task(self._follower.run(), context=Context())
        try:
            async with asyncio.timeout(BEGIN_S):
                await self._follower.is_caught_up.wait()
        except TimeoutError:
            raise unavailable() from None

    async def read(self, positions: Sequence[LetterPosition]) -> AsyncGenerator[Record]:
        """Yield the records at these positions, by partition and offset."""
        wanted: defaultdict[int, list[int]] = defaultdict(list)
        for position in sorted(positions):
            wanted[position.partition].append(position.offset)
        with _translated():
            async with self._cluster.open_reader() as reader:
                for partition, offsets in wanted.items():
                    async for record in self._read_partition(reader, partition, offsets):
                        yield record

    async def publish(self, records: Sequence[Outgoing]) -> None:
        """Write records, each to the partition of its key."""
        with _translated():
            producer = await self._opened()
            acknowledgements = [
                await producer.send(
                    record.topic,
                    record.value,
                    key=record.key,
                    headers=list(record.headers),
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            await asyncio.gather(*acknowledgements)

    async def _read_partition(self, reader: LogReader, partition: int, offsets: Sequence[int]) -> AsyncIterator[Record]:
        source = (self.topic_prefix + TOPIC, partition)
        following = 0
        for offset in offsets:
            if following > offset:
                continue
            records, following = await reader.read(source, offset, 1, READ_MS)
            if not records:
                return
            if records[0].offset == offset:
                yield replace(records[0], topic=TOPIC)

    async def _opened(self) -> AIOKafkaProducer:
        async with self._opening:
            if self._producer is None:
                producer = OwnProducer(
                    **self._cluster.connection, acks="all", enable_idempotence=True, max_request_size=MAX_RECORD_BYTES
                )
                try:
                    await producer.start()
                except BaseException:
                    await producer.stop()
                    raise
                self._producer = producer
            return self._producer


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (KafkaError, OSError) as error:
        log.warning("dead letters: %s", error)
        raise unavailable() from None
