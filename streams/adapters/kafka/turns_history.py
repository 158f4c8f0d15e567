"""The log of turns and its archive in Kafka."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from aiokafka import TopicPartition
from aiokafka.admin import RecordsToDelete
from aiokafka.errors import KafkaError
from modestream_client.kafka.log_reader import LogReader

from schemas.failures import Unavailable
from schemas.messages.records import Record
from streams.adapters.kafka.admin import committed_offsets
from streams.adapters.kafka.admin_connection import connected_admin
from streams.adapters.kafka.logs import open_reader
from streams.settings import Settings
from streams.topics import group_id, topics_with_prefix
from streams.wire.archived_turns import position_in

TAIL_RECORDS = 1000
"""Records at the end of the archive among which its position is looked for first, then those before, and so on."""


class KafkaTurnsHistory:
    """Implements `streams.flow.support.turns_history.TurnsHistory`. Opens its reader with the first call."""

    def __init__(self, settings: Settings) -> None:
        topics = topics_with_prefix(settings.topic_prefix)
        self._settings = settings
        self._turns, self._archive = topics.turns, topics.archive
        self._reader: LogReader | None = None
        self._opened = AsyncExitStack()

    async def handled(self, partition: int) -> int:
        """Return the offset that the group has committed."""
        committed = await committed_offsets(self._settings, group_id(self._settings))
        return max(committed.get((self._turns, partition), 0), 0)

    async def begin(self, partition: int) -> int:
        """Return the first offset of the log."""
        async with self._connected() as reader:
            return await reader.begin((self._turns, partition))

    async def first_since(self, partition: int, moment_ms: int) -> int | None:
        """Return the first offset with this timestamp or a later one."""
        turns = (self._turns, partition)
        async with self._connected() as reader:
            return (await reader.first_since([turns], moment_ms))[turns]

    async def read(self, partition: int, offset: int) -> tuple[Sequence[Record], int]:
        """Return a page of turns, and the offset after it."""
        async with self._connected() as reader:
            return await reader.read((self._turns, partition), offset)

    async def read_archive(self, partition: int, offset: int) -> tuple[Sequence[Record], int]:
        """Return a page of the archive, and the offset after it."""
        async with self._connected() as reader:
            return await reader.read((self._archive, partition), offset)

    async def archive_end(self, partition: int) -> int:
        """Return the end of the archive."""
        archive = (self._archive, partition)
        async with self._connected() as reader:
            return (await reader.ends([archive]))[archive]

    async def archived(self, partition: int) -> int:
        """Look for the last position from the end of the archive backwards."""
        archive = (self._archive, partition)
        async with self._connected() as reader:
            async for window in reader.windows_backwards(archive, TAIL_RECORDS):
                positions = [
                    position
                    async for records in reader.read_range(archive, window.start, window.stop)
                    for record in records
                    if (position := position_in(record)) is not None
                ]
                if positions:
                    return positions[-1]
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
        self._reader = None
        await self._opened.aclose()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[LogReader]:
        """Yield the reader; a new one after an error. Raises Unavailable."""
        try:
            if self._reader is None:
                self._reader = await self._opened.enter_async_context(open_reader(self._settings))
            yield self._reader
        except (KafkaError, OSError) as problem:
            await self.aclose()
            raise Unavailable(f"the log of turns can't be read: {problem!r}") from problem
