"""Guard a deployment's data against other settings than those that it was made with.

Enters: a worker's settings, and the compacted topic `service`. Leaves: the deployment's record, written at the first
start; or the end of the process, with both values and the way out. Guaranteed: where several workers start first at
once, with different settings, one of the settings counts for all.
"""

import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NoReturn

import structlog

from schemas.failures import Rejected
from schemas.internal.service import ServiceRecord
from schemas.messages.decoding import decode
from schemas.messages.records import Outgoing, Record
from streams.bootstrap.scope_guard import MIGRATE
from streams.channels import input_channels
from streams.flow.steps.embed import EMBEDDED_EVENTS
from streams.flow.steps.learned import LEARNED_EVENTS
from streams.flow.steps.remember import MEMORY_EVENTS
from streams.flow.support.publisher import Publisher
from streams.settings import Settings
from streams.topics import topics_with_prefix

SERVICE_KEY = b"service"
"""The key of the record."""

REFUSALS = {
    "scope_fields": "setting MODESTREAM_SCOPE_MODEL: {topic} was created with scopes of {made}, not {own}",
    "boundary": "setting MODESTREAM_SCOPE_MODEL: {topic} was created with the boundary {made}, not {own}",
    "partitions": "setting MODESTREAM_PARTITIONS: {topic} was created with {made} partitions, not {own}",
    "topic_prefix": "setting MODESTREAM_TOPIC_PREFIX: {topic} was created with the prefix {made}, not {own}",
    "schemas": "{topic} was written by a later release: the topics hold {made}, and this release reads {own}",
}
"""Why a worker does not start, by field of the record."""

ReadRecords = Callable[[], Awaitable[Sequence[Record]]]

log = structlog.get_logger()


def service_record(settings: Settings) -> ServiceRecord:
    """Return what a deployment with these settings is made with."""
    inputs = input_channels(topics_with_prefix(settings.topic_prefix), settings.scope_model)
    # Questions are not kept: their kinds may come and go.
    kept = (inputs.turns, inputs.commands, inputs.triggers, inputs.changes, inputs.jobs)
    kinds = (kind for channel in kept for kind in channel.kinds)
    schemas = (*kinds, *MEMORY_EVENTS, *EMBEDDED_EVENTS, *LEARNED_EVENTS)
    return ServiceRecord.of(settings.scope_model, settings.partitions, settings.topic_prefix, schemas)


class ServiceGuard:
    """Compares a worker's own record with that of its deployment.

    `read` returns the records of `topic`, up to its end. `read_memories` returns some records of the memories'
    changelog: where there is no record, it tells the scope that an earlier release stored memories with.
    """

    def __init__(
        self, own: ServiceRecord, topic: str, read: ReadRecords, read_memories: ReadRecords, publisher: Publisher
    ) -> None:
        self._own = own
        self._topic = topic
        self._read = read
        self._read_memories = read_memories
        self._publisher = publisher

    async def agree(self) -> ServiceRecord:
        """Return the deployment's record, and write it if there is none. Ends the process if the settings differ."""
        records = await self._records()
        if not records:
            await self._check_memories()
            await self._write(self._own)
            # Another worker may have written before, with other settings: the first record counts.
            records = await self._records()
        made = records[0].with_schemas(kind for record in records for kind in record.schemas)
        conflicts = made.conflicts(self._own)
        agreed = made if conflicts else made.with_schemas(self._own.schemas)
        if records[-1] != agreed:
            # Compaction keeps the last record, so it has to be the one that counts.
            await self._write(agreed)
        if conflicts:
            self._refuse(made, conflicts)
        return agreed

    async def _records(self) -> list[ServiceRecord]:
        """Return the records since the last tombstone."""
        values = [record.value for record in await self._read() if record.key == SERVICE_KEY]
        while None in values:
            values = values[values.index(None) + 1 :]
        return [self._parse(value) for value in values]

    def _parse(self, value: bytes | None) -> ServiceRecord:
        try:
            return decode(value, {"service.v1": ServiceRecord})
        except Rejected as problem:
            sys.exit(f"{self._topic} has a record that this release can't read, start a later one: {problem}")

    async def _write(self, record: ServiceRecord) -> None:
        value = record.model_dump_json(by_alias=True).encode()
        await (await self._publisher.send(Outgoing(self._topic, SERVICE_KEY, value)))
        log.info("deployment recorded", topic=self._topic, **record.model_dump(by_alias=True))

    async def _check_memories(self) -> None:
        for names in filter(None, map(memory_scope_fields, await self._read_memories())):
            made = self._own.model_copy(update={"scope_fields": names})
            if conflicts := made.conflicts(self._own):
                self._refuse(made, conflicts)

    def _refuse(self, made: ServiceRecord, conflicts: Sequence[str]) -> NoReturn:
        reasons = (
            REFUSALS[name].format(
                topic=self._topic, made=_text(getattr(made, name)), own=_text(getattr(self._own, name))
            )
            for name in conflicts
        )
        sys.exit("\n".join((*reasons, MIGRATE)))


def memory_scope_fields(record: Record) -> tuple[str, ...] | None:
    """Return the scope fields of a memory on the changelog; None for a tombstone."""
    try:
        return tuple(sorted(json.loads(record.value or b"")["scope"]))
    except (ValueError, KeyError, TypeError):
        return None


def _text(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)
