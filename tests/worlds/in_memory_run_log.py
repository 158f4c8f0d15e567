"""The topic of run records in memory, as a log."""

from collections.abc import Callable

from modestream_client.runs import Run

from agents.ports.commands import RunPage
from schemas.messages.published import LoggedContext
from streams.flow.runs.record import RunsFound
from tests.worlds.in_memory_topics import InMemoryTopics


class InMemoryRunLog:
    """Implements `agents.ports.commands.RunLog`."""

    def __init__(self, topics: InMemoryTopics, topic: str) -> None:
        self._topics = topics
        self._topic = topic

    async def newest(
        self, partition: int, boundary: str, admits: Callable[[Run], bool], limit: int, since_ms: int = 0
    ) -> RunPage:
        found = RunsFound(boundary.encode(), admits, limit, since_ms)
        for record in self._topics.records(self._topic):
            if record.partition == partition:
                found.take(record.key, record.value, record.timestamp_ms)
        return found.page()


class InMemoryContextLog:
    """Implements `agents.ports.commands.ContextLog`."""

    def __init__(self, topics: InMemoryTopics, topic: str) -> None:
        self._topics = topics
        self._topic = topic

    async def find(self, partition: int, boundary: str, context_id: str) -> LoggedContext | None:
        for record in self._topics.records(self._topic):
            if (record.partition, record.key) == (partition, boundary.encode()) and b"context.v1" in (
                record.value or b""
            ):
                context = LoggedContext.model_validate_json(record.value or b"")
                if context.context_id == context_id:
                    return context
        return None
