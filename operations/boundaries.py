"""The users of a deployment, read from the topic `boundaries`.

Guaranteed: every boundary that the worker has published and not withdrawn by a tombstone, in the order of their keys.
"""

from collections.abc import Collection
from contextlib import suppress

from pydantic import ValidationError

from schemas.messages.boundaries import Boundary
from schemas.messages.records import Record
from streams.adapters.kafka.logs import read_each
from streams.settings import Settings
from streams.topics import topics_with_prefix


class CurrentBoundaries:
    """The last value of each key."""

    def __init__(self) -> None:
        self.by_key: dict[bytes, Boundary] = {}

    def take(self, record: Record) -> None:
        """Take the next record of a partition. An unreadable one changes nothing."""
        key = record.key or b""
        if record.value is None:
            self.by_key.pop(key, None)
            return
        with suppress(ValidationError):
            self.by_key[key] = Boundary.model_validate_json(record.value)


async def list_boundaries(settings: Settings, users: Collection[str] | None = None) -> list[Boundary]:
    """Return all boundaries, or those of these users alone.

    Raises Unavailable while Kafka can't be read, ValueError for a user that the deployment does not have.
    """
    current = CurrentBoundaries()
    topic = topics_with_prefix(settings.topic_prefix).boundaries
    await read_each(settings, topic, range(settings.partitions), current.take)
    found = [current.by_key[key] for key in sorted(current.by_key)]
    if users is None:
        return found
    name = settings.scope_model.boundary_fields.name
    if unknown := set(users) - {name(one.scope) for one in found}:
        raise ValueError(f"{topic} has no user {', '.join(sorted(unknown))}")
    return [one for one in found if name(one.scope) in users]
