"""The topic `runs` in Kafka, read backwards from its end: what a list of the newest runs needs, and no more."""

import asyncio
from collections.abc import Callable

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from modestream_client.runs import Run

from agents.ports.run_log import RunPage
from schemas.failures import Unavailable
from streams.adapters.kafka.topic_reading import log_consumer
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

POLL_MS = 200
POLL_RECORDS = 100
"""Records between two pauses for the event loop."""

AT_ONCE = 4
"""Lists that are read at a time, two of one user."""


class KafkaRunLog:
    """Implements `agents.ports.run_log.RunLog`."""

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
            consumer = log_consumer(self._settings)
            try:
                async with asyncio.timeout(READ_S):
                    await consumer.start()
                    await _read_backwards(consumer, TopicPartition(self._topic, partition), found)
            except TimeoutError:
                found.is_complete = False
            except (KafkaError, OSError) as problem:
                raise Unavailable(f"{self._topic} can't be read: {problem!r}") from problem
            finally:
                await consumer.stop()
        return found.page()


async def _read_backwards(consumer: AIOKafkaConsumer, source: TopicPartition, found: RunsFound) -> None:
    consumer.assign([source])
    end = (await consumer.end_offsets([source]))[source]
    begin = (await consumer.beginning_offsets([source]))[source]
    last, until, window = end, end, WINDOW
    while until > begin and not found.is_enough:
        if last - until >= MAX_READ:
            found.is_complete = False
            return
        start = max(begin, until - window)
        await _read_window(consumer, source, start, until, found)
        found.finish_window()
        until, window = start, last - start


async def _read_window(
    consumer: AIOKafkaConsumer, source: TopicPartition, start: int, until: int, found: RunsFound
) -> None:
    consumer.seek(source, start)
    while await consumer.position(source) < until:
        fetched = await consumer.getmany(source, timeout_ms=POLL_MS, max_records=POLL_RECORDS)
        for record in fetched.get(source, ()):
            if record.offset < until:
                found.take(record.key, record.value, record.timestamp)
        await asyncio.sleep(0)
