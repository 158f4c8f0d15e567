"""The users of a deployment, read from the topic `boundaries`.

Guaranteed: every boundary that the worker has published and not withdrawn by a tombstone, in the order of their keys.
"""

from collections.abc import Collection

from pydantic import ValidationError

from schemas.messages.boundaries import Boundary
from schemas.messages.records import Record
from streams.adapters.kafka.topic_reading import read_each
from streams.settings import Settings
from streams.topics import topics_with_prefix


class CurrentBoundaries:
    """The last value of each key."""

    def __init__(self) -> None:
        self.by_key: dict[bytes, Boundary] = {}

    def take(self, record: Record) -> bool:
        """Take the next record of a partition; never the last that is wanted. An unreadable one changes nothing."""
        if record.value is None:
            self.by_key.pop(record.key or b"", None)
            return False
        try:
            self.by_key[record.key or b""] = Boundary.model_validate_json(record.value)
        except ValidationError:
            return False
        return False


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
