"""The topic `service` of a deployment: its record, and that of its successor, of which Kafka keeps the last values."""

from collections.abc import Collection, Iterable

from schemas.internal.service import SERVICE_KEY
from schemas.internal.successor import SUCCESSOR_KEY, Successor
from schemas.messages.records import Outgoing, Record
from streams.adapters.kafka.logs import read_to_end
from streams.flow.support.publisher import Publisher
from streams.settings import Settings
from streams.topics import topics_with_prefix

SERVICE_PARTITION = 0
"""The partition of its records: a fixed one, which is the same if someone adds partitions to the topic."""


class KafkaServiceLog:
    """Implements `streams.bootstrap.service_guard.ServiceLog`.

    `created` names the topics that this worker has just created: a new one is not read, as its partition may have no
    leader yet.
    """

    def __init__(self, settings: Settings, publisher: Publisher, created: Collection[str]) -> None:
        self._settings = settings
        self._publisher = publisher
        self.topic: str = topics_with_prefix(settings.topic_prefix).service
        self._is_new = self.topic in created

    async def values(self) -> list[bytes]:
        """Return the values since the last tombstone, first to last."""
        records = await self._records()
        values = [record.value for record in records if record.key == SERVICE_KEY]
        while None in values:
            values = values[values.index(None) + 1 :]
        return [value for value in values if value is not None]

    async def write(self, value: bytes) -> None:
        """Write a value and wait until Kafka has it, however long that takes."""
        await (await self._publisher.send(Outgoing(self.topic, SERVICE_KEY, value, partition=SERVICE_PARTITION)))
        # Another worker may have written before.
        self._is_new = False

    async def successor(self) -> Successor | None:
        """Return the deployment that replaces this one; None if none does."""
        return last_successor(await self._records())

    async def _records(self) -> list[Record]:
        return [] if self._is_new else await read_to_end(self._settings, self.topic, [SERVICE_PARTITION])


def last_successor(records: Iterable[Record]) -> Successor | None:
    """Return the last record of a successor; None if there is none. Raises ValidationError for an unknown one."""
    values = [record.value for record in records if record.key == SUCCESSOR_KEY and record.value]
    return Successor.model_validate_json(values[-1]) if values else None
