"""Writes records to Kafka with a producer of our own, apart from the one that Faust keeps for changelogs.

It is idempotent, so what aiokafka tries again is written once; what aiokafka gives up on is handed over again here,
for ever. A reply is different: its topic is the caller's, so it gets five seconds, and a topic that was found to be
missing is not asked for again for a while.
"""

import asyncio
import time
from collections.abc import Awaitable

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from schemas.records import Outgoing
from streams.metrics import Meters
from streams.topics import MAX_INPUT_BYTES

REPLY_SECONDS = 5.0
"""How long a reply is tried for (CONTRACT §2)."""

MISSING_SECONDS = 5.0
"""How long a missing reply topic is believed to be missing."""

RETRY_SECONDS = 0.5
"""The pause before a record is handed over again."""

log = structlog.get_logger()


class KafkaPublisher:
    """Publishes over one producer. `start` before, `stop` after."""

    def __init__(self, bootstrap_servers: list[str], meters: Meters) -> None:
        self._servers = bootstrap_servers
        self._meters = meters
        self._missing: dict[str, float] = {}
        self._producer: AIOKafkaProducer | None = None

    async def start(self) -> None:
        """Connect."""
        self._producer = AIOKafkaProducer(
            bootstrap_servers=self._servers,
            acks="all",
            enable_idempotence=True,
            max_request_size=2 * MAX_INPUT_BYTES,
            max_batch_size=256 * 1024,
            request_timeout_ms=30_000,
        )
        await self._producer.start()

    async def stop(self) -> None:
        """Write what was handed over, and disconnect."""
        if self._producer is not None:
            await self._producer.stop()

    async def send(self, out: Outgoing) -> Awaitable[None]:
        """Hand a record over, in order; done when the broker has it, after however many tries."""
        return self._until_written(out, await self._until_taken(out))

    async def reply(self, out: Outgoing) -> Awaitable[bool]:
        """Try a reply for five seconds, beside everything else."""
        return asyncio.ensure_future(self._try_reply(out))

    async def _until_taken(self, out: Outgoing) -> asyncio.Future[object]:
        while True:
            try:
                return await self._hand_over(out)
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
            if self._missing.get(out.topic, 0) > time.monotonic():
                raise KafkaError("the reply topic is missing")
            async with asyncio.timeout(REPLY_SECONDS):
                await self._check(out)
                await (await self._hand_over(out))
        except (KafkaError, TimeoutError, ValueError, AssertionError) as problem:
            self._meters.reply_given_up()
            log.info("reply given up", reply_topic=out.topic, problem=repr(problem))
            return False
        return True

    async def _check(self, out: Outgoing) -> None:
        """Ask the broker for the topic in time: waiting for its metadata would hold the producer's queue."""
        assert self._producer is not None
        try:
            async with asyncio.timeout(REPLY_SECONDS - 1):
                there = await self._producer.partitions_for(out.topic)
        except (KafkaError, TimeoutError):
            there = set()
        if not there or (out.partition is not None and out.partition not in there):
            if not there:
                self._missing[out.topic] = time.monotonic() + MISSING_SECONDS
            raise KafkaError(f"no partition {out.partition} of {out.topic}")

    async def _hand_over(self, out: Outgoing) -> asyncio.Future[object]:
        assert self._producer is not None
        handed: asyncio.Future[object] = await self._producer.send(
            out.topic,
            out.value,
            key=out.key,
            partition=out.partition,
            timestamp_ms=out.timestamp_ms,
            headers=list(out.headers),
        )
        return handed
