"""The topic `boundaries` in Kafka: what it tells of the boundaries of a partition."""

from functools import partial

from streams.adapters.kafka.logs import read_each
from streams.flow.background.boundary_pages import note_told
from streams.settings import Settings
from streams.topics import topics_with_prefix


class KafkaBoundaryLog:
    """Implements `streams.flow.background.boundaries.BoundaryLog`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._topic = topics_with_prefix(settings.topic_prefix).boundaries

    async def told(self, partition: int) -> dict[str, int]:
        """Return the digests of the last values by boundary, none for tombstones. Raises Unavailable."""
        told: dict[str, int] = {}
        await read_each(self._settings, self._topic, [partition], partial(note_told, told))
        return told
