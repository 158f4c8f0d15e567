"""Write records to Kafka, apart from Faust's own producer for changelogs.

Events and dead letters go, in bursts by topic, through an idempotent producer, and are retried without end while Kafka
is away. A record that Kafka refuses for good becomes a dead letter: retried, it would block its sender and all later
records forever. Replies go through `ReplyWriter`.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Sequence
from datetime import UTC, datetime

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from schemas.failures import Rejected
from schemas.messages.records import Outgoing, Record
from streams.adapters.kafka.clients import DeliveryFuture, create_producer, hand_over
from streams.adapters.kafka.reply_writer import UNHURRIED_INTERVAL_S, Bursts, ReplyWriter
from streams.observability.metrics import Meters
from streams.runtime.awaited_table import REFUSALS
from streams.runtime.fence import GroupFence
from streams.settings import KafkaConnection
from streams.topics import COMPRESSION
from streams.wire.cloudevents import CloudEvents
from streams.wire.dead_letters import dead_letter

PRODUCE_RETRY_S = 0.5

log = structlog.get_logger()

QueuedRecord = tuple[Outgoing, asyncio.Future[DeliveryFuture]]
"""A record, and the future that is resolved when the producer has accepted it."""


class KafkaPublisher:
    """Publishes between `start` and `stop`."""

    def __init__(
        self,
        connection: KafkaConnection,
        shared_replies: str,
        dead_letters: str,
        meters: Meters,
        fence: GroupFence | None = None,
        cloudevents: CloudEvents | None = None,
    ) -> None:
        """`shared_replies` is the shared reply topic, `dead_letters` the topic of records refused by Kafka.

        While the `fence` is closed nothing is written. `cloudevents` adds attributes to events.
        """
        self._connection = connection
        self._dead_letters = dead_letters
        self._meters = meters
        self._fence = fence
        self._cloudevents = cloudevents
        self._replies = ReplyWriter(connection, shared_replies, meters, fence)
        self._bursts: Bursts[QueuedRecord] = Bursts(self._send_burst)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._sending: set[asyncio.Task[None]] = set()
        self._started: list[AIOKafkaProducer | ReplyWriter] = []

    async def start(self) -> None:
        """Connect. Raises KafkaError."""
        self._events = create_producer(
            self._connection,
            enable_idempotence=True,
            request_timeout_ms=30_000,
            compression=COMPRESSION,
            fence=self._fence,
        )
        for part in (self._events, self._replies):
            await part.start()
            self._started.append(part)

    async def stop(self) -> None:
        """Flush, and disconnect; records that the broker does not accept now are given up."""
        self._bursts.flush()
        if self._sending:
            await asyncio.wait(self._sending, timeout=PRODUCE_RETRY_S)
        for sending in self._sending:
            sending.cancel()
        for producer in self._started:
            await producer.stop()

    async def send(self, out: Outgoing) -> Awaitable[None]:
        """Send a record, in order; the result is done when the broker has it or its dead letter.

        It is retried without limit. Raises KafkaError for a dead letter that Kafka refuses.
        """
        accepted: asyncio.Future[DeliveryFuture] = asyncio.get_running_loop().create_future()
        if self._cloudevents is not None:
            out = self._cloudevents.describe(out, datetime.now(UTC))
        self._bursts.add((out, accepted), UNHURRIED_INTERVAL_S if out.is_unhurried else None)
        return self._until_safe(out, accepted)

    def flush(self) -> None:
        """Hand the gathered records to the producer at once."""
        self._bursts.flush()

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
                    # Fails only this record's sender.
                    if not accepted.done():
                        accepted.set_exception(problem)
                else:
                    if not accepted.done():
                        accepted.set_result(delivery)

    async def _until_accepted(self, out: Outgoing) -> DeliveryFuture:
        while True:
            try:
                return await hand_over(self._events, out)
            except REFUSALS:
                raise
            except KafkaError as problem:
                await self._pause(problem)

    async def _until_safe(self, out: Outgoing, accepted: asyncio.Future[DeliveryFuture]) -> None:
        try:
            await self._until_written(out, accepted)
        except REFUSALS as problem:
            if out.topic == self._dead_letters:
                raise
            await self._write_dead_letter(out, problem)

    async def _write_dead_letter(self, out: Outgoing, problem: KafkaError) -> None:
        log.error("Kafka refused a record, it becomes a dead letter", topic=out.topic, problem=repr(problem))
        self._meters.rejected(out.topic, "too_large")
        now = datetime.now(UTC)
        partition, written_ms = -1 if out.partition is None else out.partition, round(now.timestamp() * 1000)
        refused = Record(out.topic, partition, -1, written_ms, out.key, out.value, out.headers)
        error = Rejected("too_large", f"Kafka refused this record of the worker: {problem!r}")
        await (await self.send(dead_letter(self._dead_letters, refused, error, now)))

    async def _until_written(self, out: Outgoing, accepted: asyncio.Future[DeliveryFuture]) -> None:
        delivery = await accepted
        while True:
            try:
                await delivery
            except REFUSALS:
                raise
            except KafkaError as problem:
                await self._pause(problem)
                delivery = await self._until_accepted(out)
            else:
                self._meters.answered("kafka")
                return

    async def _pause(self, problem: KafkaError) -> None:
        self._meters.waited_for("kafka")
        log.warning("Kafka did not accept a record, sending it again", problem=repr(problem))
        await asyncio.sleep(PRODUCE_RETRY_S)
