"""Which of the callers' reply topics exist, without letting any of them hold up the producer that writes to them.

A producer refreshes the metadata of every topic that it ever wrote to, and logs each that has gone; so topics that
nobody uses any more are taken off its list.
"""

import asyncio
import time

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

LOOKUP_TIMEOUT_S = 4.0
"""How long a topic is looked for: one that was created a moment ago shows up within less."""

MISSING_TTL_S = 1.0
"""How long a missing topic is believed to be missing: many requests may name it, each would ask the broker."""

UNUSED_TTL_S = 120.0
"""How long a topic stays on the list after its last reply."""

log = structlog.get_logger()


class ReplyTopics:
    """What one producer knows of reply topics."""

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self._producer = producer
        self._used: dict[str, float] = {}
        self._missing: dict[str, float] = {}
        self._pruned = time.monotonic()

    async def has(self, topic: str, partition: int | None) -> bool:
        """Whether the topic, and the partition if one is named, exist."""
        now = time.monotonic()
        self._prune(now)
        if self._missing.get(topic, 0.0) > now:
            return False
        self._used[topic] = now
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT_S):
                partitions = await self._producer.partitions_for(topic)
        except (KafkaError, TimeoutError):
            partitions = set()
        if not partitions:
            log.info("a reply topic is missing", reply_topic=topic)
            self._missing[topic] = time.monotonic() + MISSING_TTL_S
            self._forget({topic})
        return bool(partitions) and (partition is None or partition in partitions)

    def _prune(self, now: float) -> None:
        if now - self._pruned > UNUSED_TTL_S:
            self._pruned = now
            self._missing.clear()
            self._forget({topic for topic, used in self._used.items() if now - used > UNUSED_TTL_S})

    def _forget(self, topics: set[str]) -> None:
        for topic in topics:
            self._used.pop(topic, None)
        if topics:
            self._producer.client.set_topics(set(self._used))
