"""The topic `boundaries` in memory."""

import json
from typing import Any

from streams.flow.background.boundaries import note_told
from tests.worlds.in_memory_topics import InMemoryTopics


class InMemoryBoundaryLog:
    """Implements `streams.flow.background.boundaries.BoundaryLog`."""

    def __init__(self, topics: InMemoryTopics) -> None:
        self._topics = topics

    async def told(self, partition: int) -> dict[str, int]:
        told: dict[str, int] = {}
        for record in self._topics.records(self._topics.names.boundaries):
            if record.partition == partition:
                note_told(told, record)
        return told

    def values(self, boundary: str) -> list[Any]:
        """Return the values of a boundary's records, first to last; None for a tombstone."""
        records = self._topics.records(self._topics.names.boundaries)
        mine = [record.value for record in records if record.key == boundary.encode()]
        return [None if value is None else json.loads(value) for value in mine]
