"""Writes replies; what is slow for one caller waits beside, and delays no other request.

Reply topics belong to the callers: they may be missing, come and go, or have no leader. A request does not wait for its
reply to such a topic: it is done, and may be acknowledged, while the reply waits beside. A limited number of replies
waits; the surplus is given up at once, and each other one within five seconds. All that are given up are counted.

A request does wait for its reply to any other topic, so that a killed worker leaves it unacknowledged and answers it
after the restart. Replies to the shared topic have a producer of their own.
"""

import asyncio

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from schemas.messages.records import Outgoing
from streams.adapters.kafka.producers import create_producer, hand_over
from streams.adapters.kafka.reply_topics import UNUSED_TTL_S, ReplyTopics
from streams.adapters.kafka.waiting_replies import WaitingReplies
from streams.observability.metrics import Meters
from streams.runtime.fence import GroupFence
from streams.settings import KafkaConnection

REPLY_TIMEOUT_S = 5.0
"""How long a reply is attempted (docs/contract.md)."""

SHARED_TIMEOUT_S = 30.0
"""The same for the shared topic where it exists: after a kill of its broker, a leader is missing for ten seconds."""

SLOW_AFTER_S = 0.25
"""How long a request waits for a caller's topic: ten times what a write takes under load."""

MISSING_TIMEOUT_S = 4.0
"""How long a reply waits for a missing topic. A new topic is known to the broker within less."""

LOOKUP_PAUSE_S = 0.1
MAX_LOOKUP_PAUSE_S = 0.5
"""The pause before a missing topic is looked up again; it doubles each time."""

log = structlog.get_logger()


class ReplyWriter:
    """Writes replies, between `start` and `stop`."""

    def __init__(
        self, connection: KafkaConnection, shared_topic: str, meters: Meters, fence: GroupFence | None = None
    ) -> None:
        """`shared_topic` belongs to the service; while the `fence` is closed nothing is written."""
        self._connection = connection
        self._shared_topic = shared_topic
        self._meters = meters
        self._fence = fence
        self._topics = ReplyTopics(connection)
        self._waiting = WaitingReplies()

    async def start(self) -> None:
        """Connect. Raises KafkaError."""
        self._shared, self._callers = self._producer(SHARED_TIMEOUT_S), self._producer(REPLY_TIMEOUT_S)
        await self._shared.start()
        await self._callers.start()
        await self._topics.start()
        self._pruned = asyncio.get_running_loop().time()

    async def stop(self) -> None:
        """Disconnect; replies that wait are given up."""
        self._waiting.cancel()
        await self._shared.stop()
        await self._callers.stop()
        await self._topics.stop()

    async def write(self, out: Outgoing) -> bool:
        """Write a reply; True if the broker has it, False if it waits beside or is given up."""
        now = asyncio.get_running_loop().time()
        deadline = now + REPLY_TIMEOUT_S
        self._prune(now)
        is_shared = out.topic == self._shared_topic
        if self._waiting.waits_for(out) or not await self._has_place(out, when_slow=is_shared):
            self._wait_beside(
                out, asyncio.create_task(self._deliver_when_found(out, now + MISSING_TIMEOUT_S, deadline))
            )
            return False
        if is_shared:
            # Also while the broker is slow: beside, the reply would be lost with the worker.
            return await self._deliver(out, now + SHARED_TIMEOUT_S if self._topics.knows(out) else deadline)
        delivery = asyncio.create_task(self._deliver(out, deadline))
        await asyncio.wait({delivery}, timeout=SLOW_AFTER_S)
        if delivery.done():
            return delivery.result()
        self._wait_beside(out, delivery)
        return False

    def _producer(self, timeout_s: float) -> AIOKafkaProducer:
        timeout_ms = int(timeout_s * 1000)
        return create_producer(
            self._connection, enable_idempotence=False, request_timeout_ms=timeout_ms, fence=self._fence
        )

    def _wait_beside(self, out: Outgoing, delivery: asyncio.Task[bool]) -> None:
        if not self._waiting.add(out, delivery):
            delivery.cancel()
            self._give_up(out, "too many replies wait for their topics")

    async def _deliver_when_found(self, out: Outgoing, missing_until: float, deadline: float) -> bool:
        """Wait until the topic and partition exist, then write the reply."""
        pause = LOOKUP_PAUSE_S
        while not await self._has_place(out):
            if asyncio.get_running_loop().time() + pause > missing_until:
                self._give_up(out, "its topic or partition is missing")
                return False
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_LOOKUP_PAUSE_S)
        return await self._deliver(out, deadline)

    async def _deliver(self, out: Outgoing, deadline: float) -> bool:
        producer = self._shared if out.topic == self._shared_topic else self._callers
        try:
            async with asyncio.timeout_at(deadline):
                await _until_known(producer, out)
                await (await hand_over(producer, out))
        except (KafkaError, TimeoutError) as problem:
            # It may be gone.
            self._topics.forget(out.topic)
            self._give_up(out, repr(problem))
            return False
        return True

    async def _has_place(self, out: Outgoing, *, when_slow: bool = False) -> bool:
        """Return whether topic and partition exist, or `when_slow` if the broker does not say so in time."""
        try:
            async with asyncio.timeout(SLOW_AFTER_S):
                return await self._topics.has_place(out)
        except TimeoutError:
            return when_slow

    def _give_up(self, out: Outgoing, problem: str) -> None:
        log.info("reply given up", reply_topic=out.topic, reply_partition=out.partition, problem=problem)
        self._meters.reply_given_up()

    def _prune(self, now: float) -> None:
        """Drop unused topics: the producer asks for every one that it ever wrote to, and logs those that are gone."""
        if now - self._pruned > UNUSED_TTL_S:
            self._pruned = now
            if used := self._topics.drop_unused():
                self._callers.client.set_topics(set(used))


async def _until_known(producer: AIOKafkaProducer, out: Outgoing) -> None:
    """Wait until the producer knows the partition: it may have been added since the last update of its metadata."""
    while out.partition is not None and out.partition not in await producer.partitions_for(out.topic):
        await producer.client.force_metadata_update()
        await asyncio.sleep(LOOKUP_PAUSE_S)
