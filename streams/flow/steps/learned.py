"""`Intend` and `Categorize` on the topic of learned events: agents that derive state from turns.

Events are applied one after another, and committed before they are acknowledged. An event whose state
would exceed a row of the table becomes a dead letter: the former state stays.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from modestream_client.runs import RunPart

from agents.ports.run_timer import step
from schemas.failures import RowTooLarge
from schemas.internal.events import Learned
from schemas.messages.records import Record
from streams.fair_queue import FairShare
from streams.flow.requests.events import EventReader
from streams.flow.runs.parts import timed_part
from streams.flow.runs.recorder import RunRecorder
from streams.partition.commit import COMMIT_INTERVAL_S, PartitionCommits

LEARNED_EVENTS: Mapping[str, type[Learned]] = {"learned.v1": Learned}
"""The events read here, by schema name."""


class LearningAgent(Protocol):
    """An agent that derives state from turns."""

    def learned(self, event: Learned) -> None:
        """Replace the state derived from a turn."""


class ApplyLearned:
    """Applies `learned.v1` to the table of one agent."""

    window = 256
    pause_s = COMMIT_INTERVAL_S
    fair_share: FairShare | None = None

    def __init__(
        self,
        reader: EventReader,
        agent_at: Callable[[int], LearningAgent],
        commit: PartitionCommits,
        *,
        part: RunPart = "intend",
        runs: RunRecorder | None = None,
    ) -> None:
        """Take the agent by partition, and what it is in the run of a turn."""
        self._part = part
        self._runs = runs
        self._reader = reader
        self._agent_at = agent_at
        self._commit = commit

    async def begin(self, record: Record) -> Awaitable[int]:
        """Apply one event."""
        event: Learned | None = await self._reader.read(record)
        if event is not None:
            try:
                self._learn(event, record.partition)
            except RowTooLarge as error:
                await self._reader.reject(record, error)

        async def partition() -> int:
            return record.partition

        return partition()

    def _learn(self, event: Learned, partition: int) -> None:
        if event.memory is None:
            self._agent_at(partition).learned(event)
            return
        with timed_part(self._runs, self._part, event.memory, partition), step(f"memorize.{self._part}"):
            self._agent_at(partition).learned(event)

    async def settle(self, finished: Sequence[int]) -> None:
        """Commit the partitions that were written."""
        await self._commit.commit(finished)
