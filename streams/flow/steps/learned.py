"""`Intend` and `Categorize` on the topic of learned events: agents that derive state from turns.

Events are applied one after another, and committed before they are acknowledged. An event whose state would exceed
a row of the table becomes a dead letter: the former state stays.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from modestream_client.runs import RunPart

from schemas.failures import RowTooLarge
from schemas.internal.events import Learned
from schemas.messages.records import Record
from streams.flow.pipelines.in_force import Pipelines
from streams.flow.publisher import no_writes
from streams.flow.requests.events import EventReader
from streams.flow.runs.recorder import RunRecorder, timed_part
from streams.flow.steps.step import CommittingStep
from streams.partition.commit import PartitionCommits

LEARNED_EVENTS: Mapping[str, type[Learned]] = {"learned.v1": Learned}
"""The events read here, by schema name."""


class LearningAgent(Protocol):
    """An agent that derives state from turns."""

    def learned(self, event: Learned) -> None:
        """Replace the state derived from a turn."""


class ApplyLearned(CommittingStep):
    """Applies `learned.v1` to the table of one agent."""

    def __init__(
        self,
        reader: EventReader,
        agent_at: Callable[[int], LearningAgent],
        commit: PartitionCommits,
        pipelines: Pipelines,
        *,
        part: RunPart = "intend",
        runs: RunRecorder | None = None,
    ) -> None:
        """Take the agent by partition, and what it is in the run of a turn."""
        super().__init__(self._apply, commit, window=256)
        self._pipelines = pipelines
        self._part = part
        self._runs = runs
        self._reader = reader
        self._agent_at = agent_at

    async def _apply(self, record: Record) -> Awaitable[object]:
        event: Learned | None = await self._reader.read(record)
        if event is None:
            return no_writes()
        agent, active, step_id = self._agent_at(record.partition), self._pipelines.current, f"memorize.{self._part}"
        try:
            if event.memory is not None and active.is_on(step_id):
                with timed_part(self._runs, self._part, event.memory, record.partition):
                    await active.run({step_id: lambda _: agent.learned(event)}, {})
            else:
                # Of a changed turn nothing derives any more.
                agent.learned(Learned(memory_id=event.memory_id, scope=event.scope))
        except RowTooLarge as error:
            await self._reader.reject(record, error)
        return no_writes()

    def _set_applied(self, record: Record) -> None:
        """Note nothing: no one position speaks for two agents that read the topic."""
