"""Steps: an agent in the form that a `Delivery` runs, `begin` in order and `settle` before acknowledgement.

Around each step stand two more: one follows its records in traces, one counts the processes that a record has ended.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import UUID

from modestream_client.runs import RunPart

from agents.context.assemble import AssembledContext
from agents.rules.access.grants import PRINCIPAL_HEADER
from schemas.failures import RowTooLarge
from schemas.internal.events import Learned
from schemas.messages.assemble import AnswerRequest, AssembleRequest
from schemas.messages.published import LoggedContext, LoggedReference, query_digest, selection_of
from schemas.messages.records import Outgoing, Record
from streams.fair_queue import FairShare
from streams.flow.death_counts import DeathCounts, noted, record_name
from streams.flow.pipelines.in_force import Pipelines
from streams.flow.publisher import no_writes
from streams.flow.requests.channel import EventReader
from streams.flow.requests.pipeline import RequestPipeline
from streams.flow.runs.recorder import RunRecorder, timed_part
from streams.observability.tracing import FollowedRecord, RecordTracer
from streams.partition.commit import COMMIT_INTERVAL_S, AppliedOffsets, PartitionCommits
from streams.wire.partitioning import boundary_in

MAX_WAITING_TURNS = 20_000
"""Turns of a worker that are read and not yet acknowledged: those of a flood wait here, and others not behind them.
Some 2 KB each in memory."""

TURNS_BEGUN_AT_ONCE = 4
"""Users whose turns begin at the same time: a long text is read in a thread meanwhile."""

LARGE_TURN_BYTES = 65_536
"""A larger turn takes up to a second of computing, and brings a hundred items: one of them is stored at a time."""


class Step(Protocol):
    """One agent as a delivery runs it."""

    window: int
    """Maximum number of events in flight."""
    pause_s: float
    """Seconds between two calls of `settle`, as long as events finish meanwhile."""
    fair_share: FairShare | None
    """How users take turns; None: all records begin in order."""

    async def begin(self, record: Record) -> Awaitable[Any]:
        """Run the part that depends on order; return an awaitable of the rest."""

    async def settle(self, finished: Sequence[Any]) -> None:
        """Make the effects of a run of finished events durable."""


class RequestStep:
    """A request pipeline as a step: a finished request is safe, so `settle` has nothing to do."""

    pause_s = 0.0

    def __init__(self, pipeline: RequestPipeline, *, window: int = 256, fair_share: FairShare | None = None) -> None:
        self._pipeline = pipeline
        self.window = window
        self.fair_share = fair_share

    async def begin(self, record: Record) -> Awaitable[Any]:
        """Serve a request as far as order demands."""
        return await self._pipeline.begin(record)

    async def settle(self, finished: Sequence[Any]) -> None:
        """Do nothing: replies and events are out."""


BeginRecord = Callable[[Record], Awaitable[Awaitable[object]]]


class CommittingStep:
    """A step that changes memories: each record counts as applied, and is committed before it is acknowledged."""

    fair_share: FairShare | None = None

    def __init__(
        self, begin: BeginRecord, commit: PartitionCommits, *, window: int = 1024, pause_s: float = COMMIT_INTERVAL_S
    ) -> None:
        self._begin = begin
        self._commit = commit
        self.window = window
        self.pause_s = pause_s

    async def begin(self, record: Record) -> Awaitable[int]:
        """Apply the record; a refused one counts as applied, too."""
        finishing = await self._begin(record)
        self._set_applied(record)

        async def finish() -> int:
            await finishing
            return record.partition

        return finish()

    async def settle(self, finished: Sequence[int]) -> None:
        """Commit the partitions that were written."""
        await self._commit.commit(finished)

    def _set_applied(self, record: Record) -> None:
        self._commit.set_applied(record.partition, record.topic, record.offset + 1)


class TurnsStep(CommittingStep):
    """The step of turns: users take turns, and `progress` tells readers and commands which are applied."""

    def __init__(
        self,
        begin: BeginRecord,
        commit: PartitionCommits,
        progress: AppliedOffsets,
        boundary_of: Callable[[Record], str] = boundary_in,
    ) -> None:
        super().__init__(begin, commit, window=MAX_WAITING_TURNS)
        self._progress = progress
        self._boundary_of = boundary_of
        self.fair_share = FairShare(self._arrive, at_once=TURNS_BEGUN_AT_ONCE, large_bytes=LARGE_TURN_BYTES)

    def _arrive(self, record: Record) -> str:
        boundary = self._boundary_of(record)
        self._progress.arrive(record.partition, record.offset, boundary)
        return boundary

    def _set_applied(self, record: Record) -> None:
        self._progress.finish(record.partition, record.offset)
        next_offset = self._progress.next_offset(record.partition)
        self._commit.set_applied(record.partition, record.topic, next_offset or 0)


class PoisonGuard:
    """Runs another step; a record whose code kills the process is refused in the end. `settle` counts for no record."""

    def __init__(self, step: Step, consumer: str, deaths: DeathCounts, *, counts_kills: bool = True) -> None:
        """`consumer` names the step: a record that two of them read may kill in one alone.

        Without `counts_kills` only what its code raises counts: for steps that take long and go on where they were,
        where kills from outside could count for one record.
        """
        self._step = step
        self._consumer = consumer
        self._deaths = deaths
        self._counts_kills = counts_kills
        self.window = step.window
        self.pause_s = step.pause_s
        self.fair_share = step.fair_share

    async def begin(self, record: Record) -> Awaitable[Any]:
        name = record_name(self._consumer, record)
        begun = await noted(self._step.begin(record), name, self._deaths, counts_kills=self._counts_kills)
        return self._finish(begun, name)

    async def settle(self, finished: Sequence[Any]) -> None:
        await self._step.settle(finished)

    async def _finish(self, finishing: Awaitable[Any], name: bytes) -> Any:
        result = await noted(finishing, name, self._deaths, counts_kills=self._counts_kills)
        self._deaths.finish(name)
        return result


class TracingStep:
    """Runs another step; log lines, spans and events know the request that they come from.

    A span covers `begin` and what it returns, but not `settle`, which records share.
    """

    def __init__(self, step: Step, consumer: str) -> None:
        self._step = step
        self._tracer = RecordTracer(consumer)
        self.window = step.window
        self.pause_s = step.pause_s
        self.fair_share = step.fair_share

    async def begin(self, record: Record) -> Awaitable[Any]:
        followed = self._tracer.follow(record)
        if followed is None:
            return await self._step.begin(record)
        with followed:
            finishing = await self._step.begin(record)
        return _finish(finishing, followed)

    async def settle(self, finished: Sequence[Any]) -> None:
        await self._step.settle(finished)


async def _finish(finishing: Awaitable[Any], followed: FollowedRecord) -> Any:
    with followed:
        result = await finishing
    followed.end()
    return result


# `Intend` and `Categorize` on the topic of learned events: agents that derive state from turns.
#
# Events are applied one after another, and committed before they are acknowledged. An event whose state would exceed a
# row of the table becomes a dead letter: the former state stays.

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


UUID_TIME_SHIFT = 80
"""Bits below the time of a UUIDv7, in milliseconds."""


def context_record(
    topic: str,
    in_force: Callable[[], tuple[int, str]],
    request: AssembleRequest,
    record: Record,
    context: AssembledContext,
) -> Outgoing:
    """Return the record; `in_force` returns the revision of the pipelines, `record` is that of the request."""
    assert context.context_id is not None
    principal = record.header(PRINCIPAL_HEADER)
    logged = LoggedContext(
        context_id=context.context_id,
        scope=selection_of(request.scope.fields()),
        at=datetime.fromtimestamp((UUID(context.context_id).int >> UUID_TIME_SHIFT) / 1000, UTC),
        kind="answer" if isinstance(request, AnswerRequest) else "assemble",
        mode=context.modes[0] if len(context.modes) == 1 else list(context.modes),
        interaction_mode=context.interaction_mode,
        revision=in_force()[0],
        principal=None if principal is None else principal.decode("utf-8", "replace"),
        query_sha256=query_digest(request.query),
        references=tuple(LoggedReference(**shown._asdict()) for shown in context.shown),
        dropped=tuple(context.dropped),
        tokens={str(name): count for name, count in context.tokens.items()},
    )
    value = logged.model_dump_json(by_alias=True).encode()
    return Outgoing(topic, request.scope.boundary.encode(), value, partition=record.partition)
