"""The topic `pipelines`: revisions are written to it, and read from its beginning for as long as the worker runs.

Its records have keys of their own, so that compaction removes none: two editors may have written the same number, and
the first one counts for every reader.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import AsyncExitStack

import structlog
from aiokafka.errors import KafkaError
from modestream_client.kafka.log_reader import LogReader

from schemas.failures import Unavailable
from schemas.messages.records import Outgoing
from schemas.state.pipelines import Revision
from streams.adapters.kafka.logs import READ_TIMEOUT_S, open_reader
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
        self._reader: LogReader | None = None
        self._opened = AsyncExitStack()

    async def write(self, revision: Revision) -> None:
        """Write a revision, and wait until Kafka has it."""
        key, value = f"{revision.number}-{revision.request}", revision.model_dump_json(by_alias=True)
        out = Outgoing(self._topic, key.encode(), value.encode(), partition=PIPELINES_PARTITION)
        await (await self._publisher.send(out))

    async def begin(self, take: Take, created: Collection[str]) -> None:
        """Read all revisions. Raises Unavailable while Kafka can't be read.

        Of a topic that was `created` just now nothing is read yet: its partition may have no leader.
        """
        source = (self._topic, PIPELINES_PARTITION)
        # Where nothing comes, the broker answers after this time: each answer costs both some processor time.
        opening = open_reader(self._settings, [source], fetch_max_wait_ms=POLL_MS)
        try:
            async with AsyncExitStack() as opened, asyncio.timeout(READ_TIMEOUT_S):
                reader = await opened.enter_async_context(opening)
                if self._topic not in created:
                    async for records in reader.read_to_end(source):
                        for record in records:
                            await take(record.value)
                self._reader, self._opened = reader, opened.pop_all()
        except (KafkaError, OSError) as problem:
            raise Unavailable(f"{self._topic} can't be read: {problem!r}") from problem

    async def run(self, take: Take) -> None:
        """Read what is written from now on, until cancelled."""
        assert self._reader is not None
        while True:
            try:
                for records in (await self._reader.poll(wait_ms=POLL_MS)).values():
                    for record in records:
                        await take(record.value)
            except (KafkaError, OSError) as problem:
                log.warning("the topic of pipelines can't be read", problem=repr(problem))
                await asyncio.sleep(RETRY_S)

    async def stop(self) -> None:
        """Disconnect."""
        await self._opened.aclose()
