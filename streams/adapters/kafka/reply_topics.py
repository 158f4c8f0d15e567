"""The reply topics that exist, and their partitions: looked up on first use, many in one request to the broker.

A lookup costs the worker a millisecond, so they are gathered, see `Bursts`.

The lookup has a connection of its own: aiokafka's producer asks for all its topics each time that one is missing, and
logs every missing one each time.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence

import structlog
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from schemas.messages.records import Outgoing
from streams.adapters.kafka.topic_metadata import partitions_of_topics
from streams.runtime.bursts import Bursts
from streams.settings import KafkaConnection

LOOKUP_BATCH_SIZE = 200
"""Topics of one lookup: decoding the response blocks the event loop for some 5 ms."""

LOOKUP_TIMEOUT_MS = 2000

UNUSED_TTL_S = 120.0
"""How long a topic is remembered after its last reply."""

log = structlog.get_logger()

Partitions = frozenset[int]


class ReplyTopics:
    """Knows where replies can be written. Belongs to one event loop, between `start` and `stop`."""

    def __init__(self, connection: KafkaConnection) -> None:
        self._connection = connection
        self._known: dict[str, Partitions] = {}
        self._last_used: dict[str, float] = {}
        self._wanted: dict[str, asyncio.Future[Partitions]] = {}
        self._bursts: Bursts[str] = Bursts(self._look_up_burst)
        self._looking_up: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Connect. Raises KafkaError."""
        self._admin = AIOKafkaAdminClient(**self._connection, request_timeout_ms=LOOKUP_TIMEOUT_MS)
        await self._admin.start()

    async def stop(self) -> None:
        """Disconnect."""
        for looking_up in self._looking_up:
            looking_up.cancel()
        await self._admin.close()

    async def has_place(self, out: Outgoing) -> bool:
        """True if the topic of a reply exists, with its partition if it names one. Asks the broker if it seems not."""
        if not _is_among(out, self._known.get(out.topic, frozenset())):
            partitions = await self._look_up(out.topic)
            if not partitions:
                self.forget(out.topic)
                return False
            self._known[out.topic] = partitions
        self._last_used[out.topic] = time.monotonic()
        return _is_among(out, self._known[out.topic])

    def knows(self, out: Outgoing) -> bool:
        """True if the place of a reply existed when the broker was last asked."""
        return _is_among(out, self._known.get(out.topic, frozenset()))

    def forget(self, topic: str) -> None:
        """Look a topic up again before the next reply."""
        self._known.pop(topic, None)
        self._last_used.pop(topic, None)

    def drop_unused(self) -> frozenset[str]:
        """Forget the topics without a reply for `UNUSED_TTL_S`; return the others."""
        oldest = time.monotonic() - UNUSED_TTL_S
        for topic in [topic for topic, used in self._last_used.items() if used < oldest]:
            self.forget(topic)
        return frozenset(self._last_used)

    async def _look_up(self, topic: str) -> Partitions:
        """Return the partitions of a topic; none if it is missing, or the broker does not answer."""
        found = self._wanted.get(topic)
        if found is None:
            found = self._wanted[topic] = asyncio.get_running_loop().create_future()
            self._bursts.add(topic)
        return await asyncio.shield(found)

    def _look_up_burst(self, topics: Sequence[str]) -> None:
        for first in range(0, len(topics), LOOKUP_BATCH_SIZE):
            looking_up = asyncio.create_task(self._look_up_batch(topics[first : first + LOOKUP_BATCH_SIZE]))
            self._looking_up.add(looking_up)
            looking_up.add_done_callback(self._looking_up.discard)

    async def _look_up_batch(self, topics: Sequence[str]) -> None:
        described: Mapping[str, Partitions] = {}
        try:
            described = await self._describe(topics)
        finally:
            for topic in topics:
                self._wanted.pop(topic).set_result(described.get(topic, frozenset()))

    async def _describe(self, topics: Sequence[str]) -> Mapping[str, Partitions]:
        try:
            return await partitions_of_topics(self._admin, topics)
        except (KafkaError, OSError) as problem:
            log.warning("reply topics could not be looked up", problem=repr(problem))
            return {}


def _is_among(out: Outgoing, partitions: Partitions) -> bool:
    return bool(partitions) and (out.partition is None or out.partition in partitions)
