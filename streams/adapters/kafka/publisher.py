"""Writes records to Kafka, apart from Faust's own producer for changelogs.

Events and dead letters go, in bursts by topic, through an idempotent producer, and are sent again without end. Replies
are a matter of `ReplyWriter`.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Sequence

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from schemas.messages.records import Outgoing
from streams.adapters.kafka.producers import DeliveryFuture, create_producer, hand_over
from streams.adapters.kafka.reply_writer import ReplyWriter
from streams.observability.metrics import Meters
from streams.runtime.bursts import Bursts

PRODUCE_RETRY_S = 0.5

log = structlog.get_logger()

QueuedRecord = tuple[Outgoing, asyncio.Future[DeliveryFuture]]
"""A record, and the future that is resolved when the producer has accepted it."""


class KafkaPublisher:
    """Publishes between `start` and `stop`."""

    def __init__(self, bootstrap_servers: list[str], shared_replies: str, meters: Meters) -> None:
        """`shared_replies` is the shared reply topic."""
        self._servers = bootstrap_servers
        self._meters = meters
        self._replies = ReplyWriter(bootstrap_servers, shared_replies, meters)
        self._bursts: Bursts[QueuedRecord] = Bursts(self._send_burst)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._sending: set[asyncio.Task[None]] = set()
        self._started: list[AIOKafkaProducer | ReplyWriter] = []

    async def start(self) -> None:
        """Connect. Raises KafkaError."""
        self._events = create_producer(self._servers, enable_idempotence=True, request_timeout_ms=30_000)
        for part in (self._events, self._replies):
            await part.start()
            self._started.append(part)

    async def stop(self) -> None:
        """Flush, and disconnect; records that the broker does not take now are given up."""
        self._bursts.flush()
        if self._sending:
            await asyncio.wait(self._sending, timeout=PRODUCE_RETRY_S)
        for sending in self._sending:
            sending.cancel()
        for producer in self._started:
            await producer.stop()

    async def send(self, out: Outgoing) -> Awaitable[None]:
        """Send a record, in order; the result is done when the broker has it, after any number of retries."""
        accepted: asyncio.Future[DeliveryFuture] = asyncio.get_running_loop().create_future()
        self._bursts.add((out, accepted))
        return self._until_written(out, accepted)

    async def reply(self, out: Outgoing) -> Awaitable[bool]:
        """Send a reply in the background; the result is True if it is written, False if it waits or is given up."""
        return asyncio.ensure_future(self._replies.write(out))

    def _send_burst(self, burst: Sequence[QueuedRecord]) -> None:
        topics: defaultdict[str, list[QueuedRecord]] = defaultdict(list)
        for out, accepted in burst:
            topics[out.topic].append((out, accepted))
        for topic, records in topics.items():
            sending = asyncio.create_task(self._send_topic(topic, records))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)

    async def _send_topic(self, topic: str, records: Sequence[QueuedRecord]) -> None:
        """Give a topic's records to the producer; the lock keeps bursts in order."""
        async with self._locks[topic]:
            for out, accepted in records:
                try:
                    delivery = await self._until_accepted(out)
                except Exception as problem:
                    # Fails this record's sender alone.
                    if not accepted.done():
                        accepted.set_exception(problem)
                else:
                    if not accepted.done():
                        accepted.set_result(delivery)

    async def _until_accepted(self, out: Outgoing) -> DeliveryFuture:
        while True:
            try:
                return await hand_over(self._events, out)
            except KafkaError as problem:
                await self._pause(problem)

    async def _until_written(self, out: Outgoing, accepted: asyncio.Future[DeliveryFuture]) -> None:
        delivery = await accepted
        while True:
            try:
                await delivery
            except KafkaError as problem:
                await self._pause(problem)
                delivery = await self._until_accepted(out)
            else:
                return

    async def _pause(self, problem: KafkaError) -> None:
        self._meters.waited_for("kafka")
        log.warning("Kafka did not accept a record, sending it again", problem=repr(problem))
        await asyncio.sleep(PRODUCE_RETRY_S)
