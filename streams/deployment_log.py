"""Agree with the other workers of a deployment on a record of its topic `service`.

Guaranteed: workers that start at once, each with a record of its own, come to the same one; it is the last of its key,
which compaction keeps.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from pydantic import BaseModel, ValidationError

Entry = TypeVar("Entry", bound=BaseModel)


class DeploymentLog(Protocol):
    """The records of a deployment. Waits for Kafka however long it takes."""

    topic: str

    async def values(self) -> Mapping[bytes, Sequence[bytes]]:
        """Return the values by key since its last tombstone, first to last, with all written before the call."""

    async def write(self, key: bytes, record: BaseModel) -> None:
        """Write a record, and wait until Kafka has it."""


def readable(values: Iterable[bytes], kind: type[Entry]) -> list[Entry]:
    """Return the records that this release can read; records in a later release's format are left out."""
    records: list[Entry] = []
    for value in values:
        with suppress(ValidationError):
            records.append(kind.model_validate_json(value))
    return records


async def agree(
    log: DeploymentLog,
    key: bytes,
    own: Entry,
    merge: Callable[[Sequence[Entry]], Entry] = lambda records: records[0],
    read: Callable[[Iterable[bytes], type[Entry]], list[Entry]] = readable,
) -> Entry:
    """Return the agreed value of a key: `merge` of all its records, by default the first.

    `own` is written where there is no record.
    """
    records = read((await log.values()).get(key, ()), type(own))
    if not records:
        await log.write(key, own)
        # Another worker may have written before.
        records = read((await log.values()).get(key, ()), type(own))
    agreed = merge(records)
    if records[-1] != agreed:
        # Compaction keeps the last record, so it has to be the one that counts.
        await log.write(key, agreed)
    return agreed
