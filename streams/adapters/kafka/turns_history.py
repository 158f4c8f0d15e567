"""The log of turns and its archive in Kafka."""

from collections.abc import Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import RecordsToDelete
from aiokafka.errors import KafkaError

from schemas.failures import Unavailable
from schemas.messages.records import Record
from streams.adapters.kafka.admin import committed_offsets
from streams.adapters.kafka.admin_connection import connected_admin
from streams.adapters.kafka.topic_reading import log_consumer, record_of
from streams.settings import Settings
from streams.topics import MAX_OUTPUT_BYTES, group_id, topics_with_prefix
from streams.wire.archived_turns import position_in

PAGE_RECORDS = 1000
"""Turns that are read together, and then archived before the archive's position moves."""

POLL_MS = 1000

TAIL_RECORDS = 1000
"""Records at the end of the archive among which its position is looked for first, then twice as many, and so on."""


class KafkaTurnsHistory:
    """Implements `streams.flow.support.turns_history.TurnsHistory`. Opens its consumer with the first call."""

    def __init__(self, settings: Settings) -> None:
        topics = topics_with_prefix(settings.topic_prefix)
        self._settings = settings
        self._turns, self._archive = topics.turns, topics.archive
        self._consumer: AIOKafkaConsumer | None = None

    async def handled(self, partition: int) -> int:
        """Return the offset that the group has committed."""
        committed = await committed_offsets(self._settings, group_id(self._settings))
        return max(committed.get((self._turns, partition), 0), 0)

    async def begin(self, partition: int) -> int:
        """Return the first offset of the log."""
        return await self._offset("beginning_offsets", self._turns, partition)

    async def first_since(self, partition: int, moment_ms: int) -> int | None:
        """Return the first offset with this timestamp or a later one."""
        place = TopicPartition(self._turns, partition)
        found = (await self._ask("offsets_for_times", {place: max(moment_ms, 0)}))[place]
        return None if found is None else int(found.offset)

    async def read(self, partition: int, offset: int) -> tuple[Sequence[Record], int]:
        """Return a page of turns, and the offset after it."""
        return await self._read(TopicPartition(self._turns, partition), offset)

    async def read_archive(self, partition: int, offset: int) -> tuple[Sequence[Record], int]:
        """Return a page of the archive, and the offset after it."""
        return await self._read(TopicPartition(self._archive, partition), offset)

    async def archive_end(self, partition: int) -> int:
        """Return the end of the archive."""
        return await self._offset("end_offsets", self._archive, partition)

    async def archived(self, partition: int) -> int:
        """Look for the last position from the end of the archive backwards."""
        begin = await self._offset("beginning_offsets", self._archive, partition)
        behind, length = await self.archive_end(partition), TAIL_RECORDS
        while behind > begin:
            start = max(begin, behind - length)
            position = await self._last_position(partition, start, behind)
            if position is not None:
                return position
            behind, length = start, 2 * length
        return 0

    async def delete_before(self, partition: int, offset: int) -> None:
        """Move the beginning of the log; Kafka deletes the segments before it."""
        try:
            async with connected_admin(self._settings) as admin:
                await admin.delete_records({TopicPartition(self._turns, partition): RecordsToDelete(offset)})
        except (KafkaError, OSError) as problem:
            raise Unavailable(f"turns can't be deleted from {self._turns}: {problem!r}") from problem

    async def aclose(self) -> None:
        """Disconnect."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.stop()

    async def _last_position(self, partition: int, start: int, end: int) -> int | None:
        position = None
        while start < end:
            records, start = await self._read(TopicPartition(self._archive, partition), start)
            for record in records:
                found = position_in(record)
                position = position if found is None else found
        return position

    async def _read(self, place: TopicPartition, offset: int) -> tuple[Sequence[Record], int]:
        consumer = await self._connected()
        try:
            consumer.assign([place])
            consumer.seek(place, offset)
            fetched = await consumer.getmany(place, timeout_ms=POLL_MS, max_records=PAGE_RECORDS)
            records = [record_of(one) for one in fetched.get(place, ())]
            return records, max(offset, await consumer.position(place))
        except KafkaError as problem:
            raise await self._failed(f"{place.topic} can't be read: {problem!r}") from problem

    async def _offset(self, method: str, topic: str, partition: int) -> int:
        place = TopicPartition(topic, partition)
        return int((await self._ask(method, [place]))[place])

    async def _ask(self, method: str, places: Any) -> Any:
        consumer = await self._connected()
        try:
            return await getattr(consumer, method)(places)
        except KafkaError as problem:
            raise await self._failed(f"Kafka does not answer about the log of turns: {problem!r}") from problem

    async def _connected(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            consumer = log_consumer(
                self._settings,
                isolation_level=self._settings.isolation_level,
                max_partition_fetch_bytes=MAX_OUTPUT_BYTES,
            )
            try:
                await consumer.start()
            except (KafkaError, OSError) as problem:
                await consumer.stop()
                raise Unavailable(f"Kafka at {self._settings.broker} can't be reached: {problem!r}") from problem
            self._consumer = consumer
        return self._consumer

    async def _failed(self, message: str) -> Unavailable:
        # A new consumer for the next attempt.
        await self.aclose()
        return Unavailable(message)
