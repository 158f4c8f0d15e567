"""Steps: an agent in the form that a `Delivery` runs, `begin` in order and `settle` before acknowledgement."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from schemas.messages.records import Record
from streams.flow.requests.pipeline import RequestPipeline
from streams.flow.support.lexical_commit import COMMIT_INTERVAL_S, LexicalCommit
from streams.flow.support.progress import AppliedOffsets


class Step(Protocol):
    """One agent as a delivery runs it."""

    window: int
    """Maximum number of events in flight."""
    pause_s: float
    """Minimum seconds between two calls of `settle`."""

    async def begin(self, record: Record) -> Awaitable[Any]:
        """Run the part that depends on order; return an awaitable of the rest."""

    async def settle(self, finished: Sequence[Any]) -> None:
        """Make the effects of a run of finished events durable."""


class RequestStep:
    """A request pipeline as a step: a finished request is safe, so `settle` has nothing to do."""

    pause_s = 0.0

    def __init__(self, pipeline: RequestPipeline, *, window: int = 256) -> None:
        self._pipeline = pipeline
        self.window = window

    async def begin(self, record: Record) -> Awaitable[Any]:
        """Serve a request as far as order demands."""
        return await self._pipeline.begin(record)

    async def settle(self, finished: Sequence[Any]) -> None:
        """Do nothing: replies and events are out."""


BeginRecord = Callable[[Record], Awaitable[Awaitable[object]]]


class CommittingStep:
    """A step that changes memories: each record counts as applied, and is committed before it is acknowledged."""

    def __init__(
        self,
        begin: BeginRecord,
        commit: LexicalCommit,
        progress: AppliedOffsets | None = None,
        *,
        window: int = 1024,
        pause_s: float = COMMIT_INTERVAL_S,
    ) -> None:
        """`progress` is advanced for topics on which clients wait for their own writes."""
        self._begin = begin
        self._commit = commit
        self._progress = progress
        self.window = window
        self.pause_s = pause_s

    async def begin(self, record: Record) -> Awaitable[int]:
        """Apply the record; a refused one counts as applied, too."""
        finishing = await self._begin(record)
        self._commit.set_applied(record)
        if self._progress is not None:
            self._progress.advance(record.partition, record.offset + 1)
        return _then(finishing, record.partition)

    async def settle(self, finished: Sequence[int]) -> None:
        """Commit the lexical index of the partitions that were written."""
        await self._commit.commit(finished)


async def _then(finishing: Awaitable[object], partition: int) -> int:
    await finishing
    return partition
