"""Looks up the callers' reply topics, and keeps missing and unused ones from burdening the producer.

A producer refreshes the metadata of every topic that it ever wrote to, and logs each one that is gone; so unused topics
are removed from its list.
"""

import asyncio
import time

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

LOOKUP_TIMEOUT_S = 4.0
"""How long a topic is looked up: a newly created one shows up within less."""

MISSING_TTL_S = 1.0
"""How long a missing topic is cached as missing, so that many requests for it do not all ask the broker."""

UNUSED_TTL_S = 120.0
"""How long a topic stays on the list after its last reply."""

log = structlog.get_logger()


class ReplyTopics:
    """The reply topics of one producer."""

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
