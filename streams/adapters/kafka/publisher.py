"""Writes records to Kafka with producers of our own, apart from the one that Faust keeps for changelogs.

Events and dead letters go through an idempotent producer, so what aiokafka tries again is written once; what it
gives up on is handed over again here, for ever. They are handed over in bursts, each topic by itself. Replies are
different: their topics are the callers', may be missing and come and go, so they have a producer of their own, five
seconds, and are forgotten when nobody uses them.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Sequence

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from schemas.records import Outgoing
from streams.adapters.kafka.reply_topics import ReplyTopics
from streams.observability.metrics import Meters
from streams.runtime.bursts import Bursts
from streams.topics import MAX_OUTPUT_BYTES

REPLY_TIMEOUT_S = 5.0
"""How long a reply is tried for (CONTRACT §2)."""

PRODUCE_RETRY_S = 0.5
"""The pause before a record is handed over again."""

NULL_KEY = object()
"""Stands for no key of a record that has no value either. Kafka has such records, as anybody may write one, and its
dead letter is one; aiokafka refuses them before it looks at what keys become."""

log = structlog.get_logger()

DeliveryFuture = asyncio.Future[object]
"""Done when the broker has a record, or will not have it."""

QueuedRecord = tuple[Outgoing, asyncio.Future[DeliveryFuture]]
"""A record, and who is told that the producer has taken it."""


class KafkaPublisher:
    """Publishes over two producers. `start` before, `stop` after."""

    def __init__(self, bootstrap_servers: list[str], meters: Meters) -> None:
        self._servers = bootstrap_servers
        self._meters = meters
        self._bursts: Bursts[QueuedRecord] = Bursts(self._begin)
        self._order: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._beginning: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Connect."""
        self._events = self._producer(enable_idempotence=True, request_timeout_ms=30_000)
        reply_ms = int(REPLY_TIMEOUT_S * 1000)
        self._replies = self._producer(enable_idempotence=False, request_timeout_ms=reply_ms)
        self._reply_topics = ReplyTopics(self._replies)
        await self._events.start()
        await self._replies.start()

    async def stop(self) -> None:
        """Write what was handed over, and disconnect; what the broker does not take now is given up."""
        self._bursts.flush()
        if self._beginning:
            await asyncio.wait(self._beginning, timeout=PRODUCE_RETRY_S)
        for beginning in self._beginning:
            beginning.cancel()
        await self._events.stop()
        await self._replies.stop()

    async def send(self, out: Outgoing) -> Awaitable[None]:
        """Hand a record over, in order; done when the broker has it, after however many tries."""
        taken: asyncio.Future[DeliveryFuture] = asyncio.get_running_loop().create_future()
        self._bursts.add((out, taken))
        return self._until_written(out, taken)

    async def reply(self, out: Outgoing) -> Awaitable[bool]:
        """Try a reply for five seconds, beside everything else."""
        return asyncio.ensure_future(self._try_reply(out))

    def _producer(self, *, enable_idempotence: bool, request_timeout_ms: int) -> AIOKafkaProducer:
        return AIOKafkaProducer(
            bootstrap_servers=self._servers,
            acks="all",
            key_serializer=_key_as_sent,
            enable_idempotence=enable_idempotence,
            max_request_size=MAX_OUTPUT_BYTES,
            max_batch_size=256 * 1024,
            request_timeout_ms=request_timeout_ms,
        )

    def _begin(self, burst: Sequence[QueuedRecord]) -> None:
        topics: defaultdict[str, list[QueuedRecord]] = defaultdict(list)
        for handed in burst:
            topics[handed[0].topic].append(handed)
        for topic, records in topics.items():
            beginning = asyncio.create_task(self._give(topic, records))
            self._beginning.add(beginning)
            beginning.add_done_callback(self._beginning.discard)

    async def _give(self, topic: str, records: Sequence[QueuedRecord]) -> None:
        """Give a topic's records to the producer. Its lock lets bursts in in the order in which they came."""
        async with self._order[topic]:
            for out, taken in records:
                try:
                    writing = await self._until_taken(out)
                except Exception as problem:
                    # Whoever has sent it is told; those after it are none the worse.
                    if not taken.done():
                        taken.set_exception(problem)
                else:
                    if not taken.done():
                        taken.set_result(writing)

    async def _until_taken(self, out: Outgoing) -> DeliveryFuture:
        while True:
            try:
                return await _hand_over(self._events, out)
            except KafkaError as problem:
                await self._pause(problem)

    async def _until_written(self, out: Outgoing, taken: asyncio.Future[DeliveryFuture]) -> None:
        writing = await taken
        while True:
            try:
                await writing
            except KafkaError as problem:
                await self._pause(problem)
                writing = await self._until_taken(out)
            else:
                return

    async def _pause(self, problem: KafkaError) -> None:
        self._meters.waited_for("kafka")
        log.warning("kafka did not take a record; it is handed over again", problem=repr(problem))
        await asyncio.sleep(PRODUCE_RETRY_S)

    async def _try_reply(self, out: Outgoing) -> bool:
        try:
            async with asyncio.timeout(REPLY_TIMEOUT_S):
                if await self._reply_topics.has(out.topic, out.partition):
                    await (await _hand_over(self._replies, out))
                    return True
        except (KafkaError, TimeoutError) as problem:
            log.info("reply given up", reply_topic=out.topic, problem=repr(problem))
        self._meters.reply_given_up()
        return False


async def _hand_over(producer: AIOKafkaProducer, out: Outgoing) -> DeliveryFuture:
    handed: DeliveryFuture = await producer.send(
        out.topic,
        out.value,
        key=NULL_KEY if out.key is None and out.value is None else out.key,
        partition=out.partition,
        timestamp_ms=out.timestamp_ms,
        headers=list(out.headers),
    )
    return handed


def _key_as_sent(key: object) -> bytes | None:
    return key if isinstance(key, bytes) else None
