"""The topic `pipelines`: revisions are written to it, and read from its beginning for as long as the worker runs.

Its records have keys of their own, so that compaction removes none: two editors may have written the same number, and
the first one counts for every reader.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from schemas.failures import Unavailable
from schemas.messages.records import Outgoing
from schemas.state.pipelines import Revision
from streams.adapters.kafka.topic_reading import READ_TIMEOUT_S, log_consumer
from streams.flow.support.publisher import Publisher
from streams.settings import Settings
from streams.topics import topics_with_prefix

PIPELINES_PARTITION = 0
"""The partition of all revisions: their order is what decides."""

POLL_MS = 1000
RETRY_S = 1.0

log = structlog.get_logger()

Take = Callable[[bytes | None], Awaitable[None]]
"""Takes the value of one record."""


class KafkaPipelineLog:
    """Reads between `begin` and `stop`."""

    def __init__(self, settings: Settings, publisher: Publisher) -> None:
        self._settings = settings
        self._publisher = publisher
        self._topic = topics_with_prefix(settings.topic_prefix).pipelines
        self._consumer: AIOKafkaConsumer | None = None

    async def write(self, revision: Revision) -> None:
        """Write a revision, and wait until Kafka has it."""
        key, value = f"{revision.number}-{revision.request}", revision.model_dump_json(by_alias=True)
        out = Outgoing(self._topic, key.encode(), value.encode(), partition=PIPELINES_PARTITION)
        await (await self._publisher.send(out))

    async def begin(self, take: Take, created: Collection[str]) -> None:
        """Read all revisions. Raises Unavailable while Kafka can't be read.

        Of a topic that was `created` just now nothing is read yet: its partition may have no leader.
        """
        # Where nothing comes, the broker answers after this time: each answer costs both some processor time.
        consumer = log_consumer(self._settings, fetch_max_wait_ms=POLL_MS)
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                await consumer.start()
                await self._read_to_end(consumer, take, is_new=self._topic in created)
        except (KafkaError, OSError) as problem:
            await consumer.stop()
            raise Unavailable(f"{self._topic} can't be read: {problem!r}") from problem
        self._consumer = consumer

    async def run(self, take: Take) -> None:
        """Read what is written from now on, until cancelled."""
        assert self._consumer is not None
        while True:
            try:
                await _read_some(self._consumer, take)
            except (KafkaError, OSError) as problem:
                log.warning("the topic of pipelines can't be read", problem=repr(problem))
                await asyncio.sleep(RETRY_S)

    async def stop(self) -> None:
        """Disconnect."""
        if self._consumer is not None:
            await self._consumer.stop()

    async def _read_to_end(self, consumer: AIOKafkaConsumer, take: Take, *, is_new: bool) -> None:
        partition = TopicPartition(self._topic, PIPELINES_PARTITION)
        consumer.assign([partition])
        if is_new:
            return
        end = (await consumer.end_offsets([partition]))[partition]
        while await consumer.position(partition) < end:
            await _read_some(consumer, take)


async def _read_some(consumer: AIOKafkaConsumer, take: Take) -> None:
    for records in (await consumer.getmany(timeout_ms=POLL_MS)).values():
        for record in records:
            await take(record.value)
