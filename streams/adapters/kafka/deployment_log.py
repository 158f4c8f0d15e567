"""The topic `service` of a deployment: its records by key; compaction keeps the last of each."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial

import structlog
from aiokafka.errors import KafkaError
from pydantic import BaseModel

from schemas.failures import Unavailable
from schemas.internal.service import SUCCESSOR_KEY, Successor
from schemas.messages.records import Outgoing, Record
from streams.adapters.kafka.clients import count_partitions, create_producer, hand_over
from streams.adapters.kafka.logs import read_to_end
from streams.backoff import until_available
from streams.flow.publisher import Publisher
from streams.observability.metrics import Meters
from streams.settings import Settings
from streams.topics import topics_with_prefix

SERVICE_PARTITION = 0
"""The partition of its records, fixed even if partitions are added to the topic."""

WRITE_TIMEOUT_MS = 20_000
"""Timeout of one request to Kafka by an operator's command."""

log = structlog.get_logger()


class KafkaDeploymentLog:
    """Implements `streams.deployment_log.DeploymentLog`."""

    def __init__(self, settings: Settings, publisher: Publisher, meters: Meters) -> None:
        self._settings = settings
        self._publisher = publisher
        self._meters = meters
        self.topic: str = topics_with_prefix(settings.topic_prefix).service
        self.is_new = False
        """Read nothing, as this worker has just created the topic, which may have no leader yet."""

    async def values(self) -> Mapping[bytes, list[bytes]]:
        """Return the values by key since its last tombstone, first to last."""
        if self.is_new:
            return {}
        read = partial(read_to_end, self._settings, self.topic, [SERVICE_PARTITION])
        return values_by_key(await until_available(read, "kafka", self._meters))

    async def write(self, key: bytes, record: BaseModel) -> None:
        await (await self._publisher.send(_outgoing(self.topic, key, record)))
        log.info("deployment recorded", topic=self.topic, key=key.decode(), **record.model_dump(by_alias=True))
        # Another worker may have written before.
        self.is_new = False


async def read_values(settings: Settings) -> Mapping[bytes, list[bytes]]:
    """Return the values by key since its last tombstone; none if there is no such topic. Raises Unavailable."""
    topic = topics_with_prefix(settings.topic_prefix).service
    if not await count_partitions(settings, topic):
        return {}
    return values_by_key(await read_to_end(settings, topic, [SERVICE_PARTITION]))


async def read_successor(settings: Settings) -> Successor | None:
    """Return the deployment that replaces one; None without a successor. Raises Unavailable."""
    return last_successor(await read_values(settings))


async def write_successor(settings: Settings, successor: Successor) -> None:
    """Announce a successor to the gateways of a deployment. Raises Unavailable, perhaps after it was written."""
    topic = topics_with_prefix(settings.topic_prefix).service
    producer = create_producer(settings.kafka_connection, enable_idempotence=True, request_timeout_ms=WRITE_TIMEOUT_MS)
    try:
        await producer.start()
        await (await hand_over(producer, _outgoing(topic, SUCCESSOR_KEY, successor)))
    except (KafkaError, OSError) as problem:
        raise Unavailable(f"Kafka at {settings.broker} did not take the record: {problem!r}") from problem
    finally:
        await producer.stop()


def values_by_key(records: Iterable[Record]) -> Mapping[bytes, list[bytes]]:
    """Return the values of each key since its last tombstone, first to last."""
    values: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for record in records:
        if record.value is None:
            values.pop(record.key or b"", None)
        else:
            values[record.key or b""].append(record.value)
    return values


def last_successor(values: Mapping[bytes, Iterable[bytes]]) -> Successor | None:
    """Return the last record of a successor; None without one. Raises ValidationError for an unknown kind."""
    successors = [*values.get(SUCCESSOR_KEY, ())]
    return Successor.model_validate_json(successors[-1]) if successors else None


def _outgoing(topic: str, key: bytes, record: BaseModel) -> Outgoing:
    return Outgoing(topic, key, record.model_dump_json(by_alias=True).encode(), partition=SERVICE_PARTITION)
