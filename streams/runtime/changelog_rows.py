"""The rows of a table in the order of their writing, as its changelog has them."""

from collections.abc import AsyncIterator
from typing import Any

import faust
from aiokafka.errors import KafkaError
from faust.types import TP
from modestream_client.kafka.log_reader import open_log_reader

from schemas.failures import Unavailable
from streams.runtime.follow_copies import Rows
from streams.topics import MAX_OUTPUT_BYTES


class ChangelogRows:
    """Reads the changelog of one table as far as the table is filled."""

    def __init__(self, app: faust.App, table: str) -> None:
        self._app: Any = app
        self._table = table

    @property
    def topic(self) -> str:
        """The name of the changelog."""
        topic: str = self._app.tables[self._table].changelog_topic.get_topic_name()
        return topic

    async def after(self, partition: int, position: int) -> AsyncIterator[tuple[Rows, int]]:
        """Yield the rows from an offset on, some at a time, each time with the next offset. Raises Unavailable."""
        persisted = self._app.tables[self._table].data.persisted_offset(TP(self.topic, partition))
        end = 0 if persisted is None else persisted + 1
        if position >= end:
            return
        connection = self._app.kafka_connection
        try:
            async with open_log_reader(connection, max_partition_fetch_bytes=MAX_OUTPUT_BYTES) as reader:
                async for records in reader.read_range((self.topic, partition), position, end, most=None):
                    if records:
                        yield {record.key or b"": record.value for record in records}, records[-1].offset + 1
        except KafkaError as problem:
            raise Unavailable(f"{self.topic} can't be read: {problem!r}") from problem
