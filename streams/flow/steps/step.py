"""How an agent is run: its two halves for a `Delivery`, `begin` in order and `settle` before the acknowledgement."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol

import structlog
from pydantic import BaseModel

from schemas.decoding import decode
from schemas.failures import Rejected
from schemas.records import Outgoing, Record
from streams.flow.requests.pipeline import Channel, Handler, RequestPipeline, log_context
from streams.flow.worker_context import WorkerContext
from streams.wire.dead_letters import dead_letter

log = structlog.get_logger()


class Step(Protocol):
    """One agent as a delivery runs it."""

    window: int
    """Events under way at most."""
    pause_s: float
    """Seconds between two calls of `settle`, at least."""

    async def begin(self, record: Record) -> Awaitable[Any]:
        """The part that must happen in order."""
        ...

    async def settle(self, finished: Sequence[Any]) -> None:
        """The part that makes a run of events safe."""
        ...


class Requested:
    """A topic whose records are answered: every one is answered, moved, or a dead letter."""

    window = 256
    pause_s = 0.0

    def __init__(self, channel: Channel, handle: Handler, ctx: WorkerContext) -> None:
        topics = ctx.topics
        self._requests = RequestPipeline(
            channel=channel,
            handle=handle,
            partitions=ctx.partitions,
            replies=topics.replies,
            dead_letters=topics.dead_letters,
            publisher=ctx.publisher,
            clock=ctx.clock,
            meters=ctx.meters,
            admit=ctx.admit,
        )

    async def begin(self, record: Record) -> Awaitable[Any]:
        """Take the record as far as order demands."""
        return await self._requests.begin(record)

    async def settle(self, finished: Sequence[Any]) -> None:
        """Nothing is left to do: replies and events are out."""


class Internal:
    """A topic that only we write to. What can't be read there is a dead letter all the same."""

    def __init__(self, kinds: Mapping[str, type[Any]], ctx: WorkerContext) -> None:
        self._kinds = kinds
        self._ctx = ctx

    async def read(self, record: Record) -> Any:
        """The event in a record, or None for one that went to the dead letters."""
        try:
            return decode(record.value, self._kinds)
        except Rejected as error:
            log.warning("an event of our own can't be read", code=error.code, **log_context(record))
            self._ctx.meters.rejected(record.topic, error.code)
            letter = dead_letter(self._ctx.topics.dead_letters, record, error, self._ctx.clock.now())
            await (await self._ctx.publisher.send(letter))
            return None


def event_out(topic: str, boundary: str, event: BaseModel) -> Outgoing:
    """An event of ours as a record, in the partition of its boundary."""
    return Outgoing(topic, boundary.encode(), event.model_dump_json(by_alias=True).encode())
