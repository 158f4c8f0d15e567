"""The records of a deployment's topic `service` by their keys, besides that of the deployment itself."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from schemas.internal.general_embedder import GENERAL_EMBEDDER_KEY, GeneralEmbedder
from schemas.internal.model_record import MODEL_KEY, ModelRecord
from schemas.internal.release import RELEASE_KEY, Release
from schemas.messages.records import Outgoing, Record
from streams.adapters.kafka.logs import read_to_end
from streams.adapters.kafka.service_log import SERVICE_PARTITION
from streams.flow.support.backoff import until_available
from streams.flow.support.publisher import Publisher
from streams.observability.metrics import Meters
from streams.settings import Settings
from streams.topics import topics_with_prefix

Entry = TypeVar("Entry", bound=BaseModel)


class ServiceEntries:
    """Reads and writes entries; waits for Kafka however long it takes.

    To be used once the topic has the record of the deployment: its partition has a leader then.
    """

    def __init__(self, settings: Settings, publisher: Publisher, meters: Meters) -> None:
        self._settings = settings
        self._publisher = publisher
        self._meters = meters
        self._topic = topics_with_prefix(settings.topic_prefix).service

    async def read(self, prefix: bytes, model: type[Entry]) -> list[Entry]:
        """Return the entries whose keys begin so, first to last, with all that were written before the call."""
        return list(entries_of(await until_available(self._records, "kafka", self._meters), prefix, model))

    async def write(self, key: bytes, entry: BaseModel) -> None:
        """Write an entry, and wait until Kafka has it."""
        value = entry.model_dump_json(by_alias=True).encode()
        await (await self._publisher.send(Outgoing(self._topic, key, value, partition=SERVICE_PARTITION)))

    async def _records(self) -> list[Record]:
        return await read_to_end(self._settings, self._topic, [SERVICE_PARTITION])


def entries_of(records: Iterable[Record], prefix: bytes, model: type[Entry]) -> Iterator[Entry]:
    """Yield the entries whose keys begin with a prefix; what a later release writes in another form is its concern."""
    for one in records:
        if one.key is not None and one.key.startswith(prefix) and one.value is not None:
            with suppress(ValidationError):
                yield model.model_validate_json(one.value)


class KafkaModelLog:
    """Implements `streams.adapters.embedding.catalog.recorded_models.ModelLog`."""

    def __init__(self, entries: ServiceEntries) -> None:
        self._entries = entries

    async def records(self) -> list[ModelRecord]:
        """Return all records, first to last."""
        return await self._entries.read(MODEL_KEY, ModelRecord)

    async def write(self, record: ModelRecord) -> None:
        """Write a record, and wait until Kafka has it."""
        await self._entries.write(record.key, record)


class KafkaReleaseLog:
    """Implements `streams.bootstrap.release_guard.ReleaseLog`."""

    def __init__(self, entries: ServiceEntries) -> None:
        self._entries = entries

    async def read(self) -> list[Release]:
        """Return all records."""
        return await self._entries.read(RELEASE_KEY, Release)

    async def write(self, release: Release) -> None:
        """Write a record, and wait until Kafka has it."""
        await self._entries.write(RELEASE_KEY, release)


class KafkaGeneralEmbedderLog:
    """Implements `streams.bootstrap.general_mode.GeneralEmbedderLog`."""

    def __init__(self, entries: ServiceEntries) -> None:
        self._entries = entries

    async def read(self) -> GeneralEmbedder | None:
        """Return the last record; None without one."""
        found = await self._entries.read(GENERAL_EMBEDDER_KEY, GeneralEmbedder)
        return found[-1] if found else None

    async def write(self, chosen: GeneralEmbedder) -> None:
        """Write a record, and wait until Kafka has it."""
        await self._entries.write(GENERAL_EMBEDDER_KEY, chosen)
