"""A step whose records are followed: log lines, spans and events know the request that they come from."""

from collections.abc import Awaitable, Sequence
from typing import Any

from schemas.messages.records import Record
from streams.flow.steps.step import Step
from streams.observability.tracing import FollowedRecord, RecordTracer


class TracedStep:
    """Runs another step. A span covers `begin` and what it returns, but not `settle`, which records share."""

    def __init__(self, step: Step, consumer: str) -> None:
        """`consumer` names the spans."""
        self._step = step
        self._tracer = RecordTracer(consumer)
        self.window = step.window
        self.pause_s = step.pause_s
        self.fair_share = step.fair_share

    async def begin(self, record: Record) -> Awaitable[Any]:
        """Begin with a record, and follow it."""
        followed = self._tracer.follow(record)
        if followed is None:
            return await self._step.begin(record)
        with followed:
            finishing = await self._step.begin(record)
        return _finish(finishing, followed)

    async def settle(self, finished: Sequence[Any]) -> None:
        """Settle the step."""
        await self._step.settle(finished)


async def _finish(finishing: Awaitable[Any], followed: FollowedRecord) -> Any:
    with followed:
        result = await finishing
    followed.end()
    return result
