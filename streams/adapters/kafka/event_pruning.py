"""Deletes the worker's own events from Kafka's log when they are handled and old.

Events carry texts of turns, and what was made of them is in the tables: kept for ever, they would outlive a `forget`
and take twice the disk of the turns. Guaranteed: no record is deleted that the workers have not handled and committed,
and none of a topic that clients write to.
"""

import asyncio
import time
from collections.abc import Mapping
from datetime import timedelta

import structlog
from aiokafka import TopicPartition
from aiokafka.admin import RecordsToDelete
from aiokafka.errors import KafkaError

from schemas.failures import Unavailable
from streams.adapters.kafka.admin import committed_offsets
from streams.adapters.kafka.admin_connection import connected_admin
from streams.adapters.kafka.logs import open_reader
from streams.retention import MAX_PASS_INTERVAL_S
from streams.settings import Settings
from streams.topics import group_id, topics_with_prefix

log = structlog.get_logger()


class PruneEvents:
    """Deletes handled events of a deployment's internal topics."""

    def __init__(self, settings: Settings, kept: timedelta, interval_s: float = MAX_PASS_INTERVAL_S) -> None:
        """`kept` is how long a handled event stays."""
        self._interval_s = interval_s
        self._settings = settings
        self._kept = kept
        self._topics = topics_with_prefix(settings.topic_prefix).internal_events()

    async def run(self) -> None:
        """Delete again and again, until cancelled."""
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                await self.prune()
            except (KafkaError, OSError, Unavailable) as problem:
                log.warning("handled events could not be deleted", problem=repr(problem))

    async def prune(self) -> None:
        """Delete the events that are handled and old. Raises KafkaError, OSError or Unavailable without Kafka."""
        committed = await committed_offsets(self._settings, group_id(self._settings))
        handled = {
            TopicPartition(topic, partition): offset
            for (topic, partition), offset in committed.items()
            if topic in self._topics and offset > 0
        }
        if handled:
            await self._delete_before(await self._deletable(handled))

    async def _deletable(self, handled: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the end of what may be deleted, by partition; partitions without such records are left out."""
        oldest_kept_ms = round((time.time() - self._kept.total_seconds()) * 1000)
        async with open_reader(self._settings) as reader:
            begins = await reader.begins(handled)
            kept_from = await reader.first_since(handled, oldest_kept_ms)
        ends: dict[TopicPartition, int] = {}
        for partition, offset in handled.items():
            # None: every record is older.
            kept = kept_from[partition]
            ends[partition] = offset if kept is None else min(offset, kept)
        return {partition: end for partition, end in ends.items() if end > begins[partition]}

    async def _delete_before(self, ends: Mapping[TopicPartition, int]) -> None:
        if not ends:
            return
        async with connected_admin(self._settings) as admin:
            await admin.delete_records({partition: RecordsToDelete(end) for partition, end in ends.items()})
        log.info("handled events deleted", topics=sorted({partition.topic for partition in ends}))
