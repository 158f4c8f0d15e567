"""Ends a worker whose own topics are gone.

A topic that is deleted while workers run stops them: their group assigns nothing, and every record for it waits. A new
start creates it again. Enters: the broker's list of topics, every few seconds. Leaves: the end of the process, after a
minute in which every answer of the broker lacked a topic; a broker that does not answer proves nothing.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable

import structlog
from aiokafka.errors import KafkaError

from streams.adapters.kafka.admin_connection import connected_admin
from streams.adapters.kafka.topic_metadata import partitions_of_topics
from streams.settings import Settings

WATCH_INTERVAL_S = 10.0
"""The pause between two lookups; each takes the broker a millisecond."""

MISSING_TIMEOUT_S = 60.0
"""How long a topic may be missing: metadata of a broker that has just started may lack topics for seconds."""

log = structlog.get_logger()


class MissingTopics:
    """Tells which topics are missing for too long."""

    def __init__(self, topics: Iterable[str], now: Callable[[], float] = time.monotonic) -> None:
        self._topics = frozenset(topics)
        self._now = now
        self._since: dict[str, float] = {}

    def note(self, existing: Collection[str]) -> list[str]:
        """Take one answer of the broker; return the topics that all answers of `MISSING_TIMEOUT_S` lacked."""
        now = self._now()
        self._since = {topic: self._since.get(topic, now) for topic in self._topics.difference(existing)}
        return sorted(topic for topic, since in self._since.items() if now - since >= MISSING_TIMEOUT_S)

    def forget(self) -> None:
        """Begin again: the broker did not answer."""
        self._since.clear()


class WatchTopics:
    """Looks for the topics of a deployment."""

    def __init__(self, settings: Settings, topics: Iterable[str], on_missing: Callable[[], None]) -> None:
        """`on_missing` ends the process."""
        self._settings = settings
        self._topics = frozenset(topics)
        self._on_missing = on_missing

    async def run(self) -> None:
        """Look again and again, until cancelled or `on_missing` has returned."""
        missing = MissingTopics(self._topics)
        while True:
            await asyncio.sleep(WATCH_INTERVAL_S)
            try:
                existing = await self._existing()
            except (KafkaError, OSError) as problem:
                log.warning("topics could not be looked up", problem=repr(problem))
                missing.forget()
            else:
                if gone := missing.note(existing):
                    log.error("topics of the deployment are gone, a new start creates them again", topics=gone)
                    self._on_missing()
                    return

    async def _existing(self) -> set[str]:
        async with connected_admin(self._settings) as admin:
            found = await partitions_of_topics(admin, self._topics)
        return {topic for topic, partitions in found.items() if partitions}
