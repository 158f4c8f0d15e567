"""`Intend` and `Categorize` on the topic of learned events: agents that derive state from turns.

Events are applied one after another; the writes of each are awaited before it is acknowledged. An event whose state
would exceed a row of the table becomes a dead letter: the former state stays.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from modestream_client.runs import RunPart

from agents.ports.run_timer import step
from schemas.failures import RowTooLarge
from schemas.internal.events import Learned
from schemas.messages.records import Record
from streams.fair_queue import FairShare
from streams.flow.publisher import await_all
from streams.flow.requests.events import EventReader
from streams.flow.runs.parts import timed_part
from streams.flow.runs.recorder import RunRecorder
from streams.flow.stores.tables import Table

LEARNED_EVENTS: Mapping[str, type[Learned]] = {"learned.v1": Learned}
"""The events read here, by schema name."""


class LearningAgent(Protocol):
    """An agent that derives state from turns."""

    def learned(self, event: Learned) -> None:
        """Replace the state derived from a turn."""


class ApplyLearned:
    """Applies `learned.v1` to the table of one agent."""

    window = 256
    pause_s = 0.0
    fair_share: FairShare | None = None

    def __init__(
        self,
        reader: EventReader,
        agent_at: Callable[[int], LearningAgent],
        table: Table[Any, Any],
        *,
        part: RunPart = "intend",
        runs: RunRecorder | None = None,
    ) -> None:
        """Take the agent by partition, the table that it writes, and what it is in the run of a turn."""
        self._part = part
        self._runs = runs
        self._reader = reader
        self._agent_at = agent_at
        self._table = table

    async def begin(self, record: Record) -> Awaitable[None]:
        """Apply one event."""
        event: Learned | None = await self._reader.read(record)
        if event is not None:
            try:
                self._learn(event, record.partition)
            except RowTooLarge as error:
                await self._reader.reject(record, error)
        # Taken before the next await: these are the writes of this event alone.
        return await_all(self._table.pending_writes())

    def _learn(self, event: Learned, partition: int) -> None:
        if event.memory is None:
            self._agent_at(partition).learned(event)
            return
        with timed_part(self._runs, self._part, event.memory, partition), step(f"memorize.{self._part}"):
            self._agent_at(partition).learned(event)

    async def settle(self, finished: Sequence[None]) -> None:
        """Do nothing: the table is written."""
