"""The topic `runs` in Kafka, read backwards from its end: what a list of the newest runs needs, and no more."""

import asyncio
from collections.abc import Callable

from modestream_client.kafka.log_reader import LogReader
from modestream_client.runs import Run

from agents.ports.jobs import RunPage
from schemas.failures import Unavailable
from streams.adapters.kafka.logs import open_reader
from streams.flow.runs.found import RunsFound
from streams.flow.support.fair_turns import FairTurns
from streams.settings import Settings
from streams.topics import topics_with_prefix

WINDOW = 1000
"""Records that are read first, and before those as many as were read until then."""

MAX_READ = 20_000
"""Records that one list reads, those of all users of the partition: half a second's work, in small parts."""

READ_S = 3.0
"""Seconds that one list may take; what was found until then is shown."""

POLL_RECORDS = 100
"""Records between two pauses for the event loop."""

FETCH_BYTES = 1 << 20
"""Bytes of one response: a window's end is not known to the broker."""

AT_ONCE = 4
"""Lists that are read at a time, two of one user."""


class KafkaRunLog:
    """Implements `agents.ports.jobs.RunLog`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._topic = topics_with_prefix(settings.topic_prefix).runs
        self._turns = FairTurns(AT_ONCE, 2 * READ_S)

    async def newest(
        self, partition: int, boundary: str, admits: Callable[[Run], bool], limit: int, since_ms: int = 0
    ) -> RunPage:
        """Return the newest runs, as far as `MAX_READ` records and `READ_S` seconds go. Raises Unavailable."""
        async with self._turns.turn(boundary):
            found = RunsFound(boundary.encode(), admits, limit, since_ms)
            try:
                async with (
                    asyncio.timeout(READ_S),
                    open_reader(self._settings, max_partition_fetch_bytes=FETCH_BYTES) as reader,
                ):
                    await self._read_backwards(reader, partition, found)
            except TimeoutError:
                found.is_complete = False
            except OSError as problem:
                raise Unavailable(f"{self._topic} can't be read: {problem!r}") from problem
        return found.page()

    async def _read_backwards(self, reader: LogReader, partition: int, found: RunsFound) -> None:
        source, end = (self._topic, partition), 0
        async for window in reader.windows_backwards(source, WINDOW):
            end = max(end, window.stop)
            if found.is_enough:
                return
            if end - window.stop >= MAX_READ:
                found.is_complete = False
                return
            async for records in reader.read_range(source, window.start, window.stop, POLL_RECORDS):
                for record in records:
                    found.take(record.key, record.value, record.timestamp_ms)
            found.finish_window()
