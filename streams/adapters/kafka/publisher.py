"""Writes records to Kafka with two producers, apart from Faust's own for changelogs.

Events and dead letters go, in bursts by topic, through an idempotent producer, and are sent again without end. Reply
topics belong to the callers, may be missing, and come and go: replies have a producer of their own and five seconds.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Sequence

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from schemas.messages.records import Outgoing
from streams.observability.metrics import Meters
from streams.runtime.bursts import Bursts
from streams.topics import MAX_OUTPUT_BYTES

REPLY_TIMEOUT_S = 5.0
"""How long a reply is attempted (docs/contract.md)."""

PRODUCE_RETRY_S = 0.5

NULL_KEY = object()
"""Stands for the missing key of a record without a value. Such records exist in Kafka, and their dead letters are such
records too; aiokafka rejects them before it serialises the key."""

log = structlog.get_logger()

DeliveryFuture = asyncio.Future[object]
"""Done when the broker has acknowledged a record, or the producer has given it up."""

QueuedRecord = tuple[Outgoing, asyncio.Future[DeliveryFuture]]
"""A record, and the future that is resolved when the producer has accepted it."""


class KafkaPublisher:
    """Publishes over two producers, between `start` and `stop`."""

    def __init__(self, bootstrap_servers: list[str], meters: Meters) -> None:
        self._servers = bootstrap_servers
        self._meters = meters
        self._bursts: Bursts[QueuedRecord] = Bursts(self._send_burst)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._sending: set[asyncio.Task[None]] = set()
        self._started: list[AIOKafkaProducer] = []

    async def start(self) -> None:
        """Connect both producers."""
        self._events = self._producer(enable_idempotence=True, request_timeout_ms=30_000)
        reply_ms = int(REPLY_TIMEOUT_S * 1000)
        self._replies = self._producer(enable_idempotence=False, request_timeout_ms=reply_ms)
        self._reply_topics = ReplyTopics(self._replies)
        for producer in (self._events, self._replies):
            await producer.start()
            self._started.append(producer)

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
        """Send a reply in the background, for five seconds at most; the result is whether it was written."""
        return asyncio.ensure_future(self._try_reply(out))

    def _producer(self, *, enable_idempotence: bool, request_timeout_ms: int) -> AIOKafkaProducer:
        return AIOKafkaProducer(
            bootstrap_servers=self._servers,
            acks="all",
            key_serializer=_serialize_key,
            enable_idempotence=enable_idempotence,
            max_request_size=MAX_OUTPUT_BYTES,
            max_batch_size=256 * 1024,
            request_timeout_ms=request_timeout_ms,
        )

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
                return await _send(self._events, out)
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

    async def _try_reply(self, out: Outgoing) -> bool:
        try:
            async with asyncio.timeout(REPLY_TIMEOUT_S):
                if await self._reply_topics.has(out.topic, out.partition):
                    await (await _send(self._replies, out))
                    return True
        except (KafkaError, TimeoutError) as problem:
            log.info("reply given up", reply_topic=out.topic, problem=repr(problem))
        self._meters.reply_given_up()
        return False


async def _send(producer: AIOKafkaProducer, out: Outgoing) -> DeliveryFuture:
    delivery: DeliveryFuture = await producer.send(
        out.topic,
        out.value,
        key=NULL_KEY if out.key is None and out.value is None else out.key,
        partition=out.partition,
        timestamp_ms=out.timestamp_ms,
        headers=list(out.headers),
    )
    return delivery


def _serialize_key(key: object) -> bytes | None:
    return key if isinstance(key, bytes) else None


LOOKUP_TIMEOUT_S = 4.0
"""How long a topic is looked up: a newly created one shows up within less."""

MISSING_TTL_S = 1.0
"""How long a missing topic is cached as missing, so that many requests for it do not all ask the broker."""

UNUSED_TTL_S = 120.0
"""How long a topic stays on the list after its last reply."""


class ReplyTopics:
    """The reply topics of one producer.

    A producer refreshes the metadata of every topic that it ever wrote to, and logs each one that is gone; so unused
    topics are removed from its list.
    """

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self._producer = producer
        self._last_used: dict[str, float] = {}
        self._missing: dict[str, float] = {}
        self._pruned = time.monotonic()

    async def has(self, topic: str, partition: int | None) -> bool:
        """True if the topic exists, with the partition if one is given."""
        now = time.monotonic()
        self._prune(now)
        if self._missing.get(topic, 0.0) > now:
            return False
        self._last_used[topic] = now
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT_S):
                partitions = await self._producer.partitions_for(topic)
        except (KafkaError, TimeoutError):
            partitions = set()
        if not partitions:
            log.info("reply topic is missing", reply_topic=topic)
            self._missing[topic] = time.monotonic() + MISSING_TTL_S
            self._forget({topic})
        return bool(partitions) and (partition is None or partition in partitions)

    def _prune(self, now: float) -> None:
        if now - self._pruned > UNUSED_TTL_S:
            self._pruned = now
            self._missing.clear()
            self._forget({topic for topic, used in self._last_used.items() if now - used > UNUSED_TTL_S})

    def _forget(self, topics: set[str]) -> None:
        for topic in topics:
            self._last_used.pop(topic, None)
        if topics:
            self._producer.client.set_topics(set(self._last_used))
