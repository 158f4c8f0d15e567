"""The topic of run records in memory, as a log."""

from collections.abc import Callable

from modestream_client.runs import Run

from agents.ports.jobs import RunPage
from streams.flow.runs.found import RunsFound
from tests.worlds.in_memory_topics import InMemoryTopics


class InMemoryRunLog:
    """Implements `agents.ports.jobs.RunLog`."""

    def __init__(self, topics: InMemoryTopics, topic: str) -> None:
        self._topics = topics
        self._topic = topic

    async def newest(
        self, partition: int, boundary: str, admits: Callable[[Run], bool], limit: int, since_ms: int = 0
    ) -> RunPage:
        """Return the newest runs."""
        found = RunsFound(boundary.encode(), admits, limit, since_ms)
        for record in self._topics.records(self._topic):
            if record.partition == partition:
                found.take(record.key, record.value, record.timestamp_ms)
        return found.page()
