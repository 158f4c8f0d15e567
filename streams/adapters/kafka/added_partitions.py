"""Reads the partitions that an operator has added to input topics; the records there belong to other partitions.

Enters: the records of partitions beyond the deployment's number. Leaves: the same records, moved, refused or dropped by
the request pipeline of their topic. Guaranteed: a record counts as read when its copy, its error reply or its dead
letter is written; a worker that dies before moves it again, which changes nothing. Each added partition is read by the
worker that has the partition of its number modulo the deployment's.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping

import structlog
from aiokafka.errors import KafkaError
from modestream_client.kafka.log_reader import TopicAndPartition

from schemas.failures import Unavailable
from schemas.messages.records import Record
from streams.adapters.kafka.admin_connection import connected_admin
from streams.adapters.kafka.logs import open_reader
from streams.adapters.kafka.topic_metadata import partitions_of_topics
from streams.flow.support.awaiting import await_all
from streams.settings import Settings
from streams.topics import group_id

WAIT_MS = 1000
"""How long the end of an added partition is waited at for further records."""

LOOKUP_INTERVAL_S = 10.0
"""How long a record may lie in a new partition before it is seen; a lookup takes the broker a millisecond."""

MAX_RECORDS = 100
"""Records that are moved between two commits."""

log = structlog.get_logger()

BeginRecord = Callable[[Record], Awaitable[Awaitable[object]]]


class MoveAddedPartitions:
    """Moves what is written to partitions beyond the deployment's number."""

    def __init__(
        self, settings: Settings, pipelines: Mapping[str, BeginRecord], served: Callable[[], Collection[int]]
    ) -> None:
        """`pipelines` has the request pipeline of each input topic, `served` returns this worker's partitions."""
        self._settings = settings
        self._pipelines = pipelines
        self._served = served

    async def run(self) -> None:
        """Look for added partitions and read them, until cancelled."""
        while True:
            try:
                if added := await self._added():
                    await self._move(added)
            except (KafkaError, OSError, Unavailable) as problem:
                log.warning("added partitions could not be read", problem=repr(problem))
            await asyncio.sleep(LOOKUP_INTERVAL_S)

    async def _added(self) -> list[TopicAndPartition]:
        async with connected_admin(self._settings) as admin:
            numbers = await partitions_of_topics(admin, self._pipelines)
        return [(topic, number) for topic, each in numbers.items() for number in each if self._is_mine(number)]

    def _is_mine(self, partition: int) -> bool:
        count = self._settings.partitions
        return partition >= count and partition % count in self._served()

    async def _move(self, added: Collection[TopicAndPartition]) -> None:
        """Read to the present end."""
        # Assigned by hand: the group has the offsets alone.
        async with open_reader(self._settings, added, group_id=f"{group_id(self._settings)}-added") as reader:
            while moved := await reader.poll(MAX_RECORDS, WAIT_MS):
                records = [record for several in moved.values() for record in several]
                await await_all([await self._pipelines[record.topic](record) for record in records])
                await reader.commit()
            # Again where nothing was moved: Kafka drops the offsets of a group without members a week after a commit,
            # and old commands would be moved, and executed, once more.
            await reader.commit()
