"""Writes records to Kafka with producers of our own, apart from the one that Faust keeps for changelogs.

Events and dead letters go through an idempotent producer, so what aiokafka tries again is written once; what it
gives up on is handed over again here, for ever. Replies are different: their topics are the callers', may be missing
and come and go, so they have a producer of their own, five seconds, and are forgotten when nobody uses them.
"""

import asyncio
from collections.abc import Awaitable

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from schemas.records import Outgoing
from streams.adapters.kafka.reply_topics import ReplyTopics
from streams.topics import MAX_INPUT_BYTES
from streams.watching.metrics import Meters

REPLY_SECONDS = 5.0
"""How long a reply is tried for (CONTRACT §2)."""

LINGER_SECONDS = 0.005
"""Between two requests with events or changelog records: they come one by one, and each request costs both sides a
millisecond. Nobody waits for these records: a turn can be read, and is answered, before."""

RETRY_SECONDS = 0.5
"""The pause before a record is handed over again."""

log = structlog.get_logger()


class KafkaPublisher:
    """Publishes over two producers. `start` before, `stop` after."""

    def __init__(self, bootstrap_servers: list[str], meters: Meters) -> None:
        self._servers = bootstrap_servers
        self._meters = meters

    async def start(self) -> None:
        """Connect."""
        self._events = self._producer(
            enable_idempotence=True, request_timeout_ms=30_000, linger_ms=LINGER_SECONDS * 1000
        )
        reply_ms = int(REPLY_SECONDS * 1000)
        self._replies = self._producer(enable_idempotence=False, request_timeout_ms=reply_ms, linger_ms=0)
        self._reply_topics = ReplyTopics(self._replies)
        await self._events.start()
        await self._replies.start()

    async def stop(self) -> None:
        """Write what was handed over, and disconnect."""
        await self._events.stop()
        await self._replies.stop()

    async def send(self, out: Outgoing) -> Awaitable[None]:
        """Hand a record over, in order; done when the broker has it, after however many tries."""
        return self._until_written(out, await self._until_taken(out))

    async def reply(self, out: Outgoing) -> Awaitable[bool]:
        """Try a reply for five seconds, beside everything else."""
        return asyncio.ensure_future(self._try_reply(out))

    def _producer(self, *, enable_idempotence: bool, request_timeout_ms: int, linger_ms: float) -> AIOKafkaProducer:
        return AIOKafkaProducer(
            bootstrap_servers=self._servers,
            acks="all",
            enable_idempotence=enable_idempotence,
            max_request_size=2 * MAX_INPUT_BYTES,
            max_batch_size=256 * 1024,
            request_timeout_ms=request_timeout_ms,
            linger_ms=linger_ms,
        )

    async def _until_taken(self, out: Outgoing) -> asyncio.Future[object]:
        while True:
            try:
                return await _hand_over(self._events, out)
            except KafkaError as problem:
                await self._pause(problem)

    async def _until_written(self, out: Outgoing, writing: asyncio.Future[object]) -> None:
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
        await asyncio.sleep(RETRY_SECONDS)

    async def _try_reply(self, out: Outgoing) -> bool:
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                if await self._reply_topics.has(out.topic, out.partition):
                    await (await _hand_over(self._replies, out))
                    return True
        except (KafkaError, TimeoutError) as problem:
            log.info("reply given up", reply_topic=out.topic, problem=repr(problem))
        self._meters.reply_given_up()
        return False


async def _hand_over(producer: AIOKafkaProducer, out: Outgoing) -> asyncio.Future[object]:
    handed: asyncio.Future[object] = await producer.send(
        out.topic,
        out.value,
        key=out.key,
        partition=out.partition,
        timestamp_ms=out.timestamp_ms,
        headers=list(out.headers),
    )
    return handed
