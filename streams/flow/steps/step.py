"""Steps: an agent in the form that a `Delivery` runs, `begin` in order and `settle` before acknowledgement."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from schemas.messages.records import Record
from streams.fair_queue import FairShare
from streams.flow.requests.pipeline import RequestPipeline
from streams.partition.commit import COMMIT_INTERVAL_S, PartitionCommits
from streams.partition.progress import AppliedOffsets
from streams.wire.scope_key import boundary_in

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
        """`boundary_of` is `boundary_in` with the deployment's boundary fields."""
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
