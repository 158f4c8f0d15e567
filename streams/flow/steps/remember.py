"""The keeper of memories on its topics of turns, of what the indexer did, and of what was understood.

What is applied can be read at once; the word index is committed, and the changelog written, before anything is
acknowledged. Each topic by itself is applied in order.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from agents.memory.items import MemoryEvent
from agents.memory.remember import Remember, TurnResult
from schemas.consolidation import Consolidated, Distilled, ItemsMerged
from schemas.events import Embedded, Learned, Understood
from schemas.records import Outgoing, Record
from schemas.replies import SuccessReply, Warned
from schemas.turns import Turn
from streams.flow.requests.pipeline import Channel, Handler, HandlerResult, ReplyOptions
from streams.flow.steps.step import Internal, Requested, event_out
from streams.flow.support.awaiting import await_all
from streams.flow.support.backoff import until_available
from streams.flow.worker_context import WorkerContext

COMMIT_INTERVAL_S = 0.05
"""Between two commits of the word index; only acknowledgements wait for them, not readers."""

STORAGE_TIMEOUT_S = 30.0
"""How long our own disk is waited for. A full one may get room; what stays broken needs a new start of the process."""

FORGOTTEN_WARNING = Warned("forgotten", "this turn was forgotten and stays so; nothing was stored")
"""What the answer to a turn says that was forgotten before and comes again."""

InternalEvent = Embedded | Understood | Distilled | ItemsMerged | Consolidated
"""What the keeper is told by others. The last of a consolidation only sums up what it did."""

INTERNAL_EVENT_MODELS: Mapping[str, type[InternalEvent]] = {
    "embedded.v1": Embedded,
    "understood.v1": Understood,
    "distilled.v1": Distilled,
    "evolved.v1": ItemsMerged,
    "consolidated.v1": Consolidated,
}
"""By the name of its schema what a record is."""


class Applied(Requested):
    """Requests that change memories: each is noted as applied, whatever became of it, and committed before acks."""

    window = 1024
    pause_s = COMMIT_INTERVAL_S

    def __init__(self, channel: Channel, handle: Handler, ctx: WorkerContext) -> None:
        super().__init__(channel, handle, ctx)
        self._ctx = ctx

    async def begin(self, record: Record) -> Awaitable[int]:
        """Apply the record."""
        finishing = await super().begin(record)
        self._ctx.words.set_applied(record.partition, record.topic, record.offset + 1)
        return _then(finishing, record.partition)

    async def settle(self, finished: Sequence[int]) -> None:
        """Commit the word index of the partitions that were written."""
        await _commit(self._ctx, finished)


class RememberTurns(Applied):
    """Turns into memories, one after another; what is applied can be read at once."""

    def __init__(self, channel: Channel, remember: Remember, ctx: WorkerContext) -> None:
        super().__init__(channel, self._handle, ctx)
        self._remember = remember

    async def begin(self, record: Record) -> Awaitable[int]:
        """Apply the record, and tell those who wait for their own writes."""
        finishing = await super().begin(record)
        self._ctx.progress.advance(record.partition, record.offset + 1)
        return finishing

    async def _handle(self, turn: Turn, record: Record, _asked: ReplyOptions) -> HandlerResult:
        async def remember() -> TurnResult:
            return self._remember.turn(turn, record)

        # A full disk is no reason to refuse a turn: it waits, and those behind it.
        accepted = await until_available(remember, "storage", self._ctx.meters, at_most_s=STORAGE_TIMEOUT_S)
        safe = pending_memory_writes(self._ctx)
        if accepted.event is not None:
            self._ctx.meters.usage.decided(accepted.result.mode_source)
        warnings = (FORGOTTEN_WARNING,) if accepted.forgotten else ()
        events = derived_events(self._ctx, turn.scope.boundary, accepted.events)
        return HandlerResult(SuccessReply(accepted.result, warnings), events, safe)


HasWritten = Callable[[Embedded], Awaitable[bool]]
"""Tells whether the vector of an event is in the index."""


class RememberEvents(Internal):
    """What the indexer did, and what was understood: one event, one record.

    A vector that another run of a worker has written is looked for before its memory is ready: that disk may be lost.
    Those of this run, nearly all, cost nothing more.
    """

    window = 1024
    pause_s = COMMIT_INTERVAL_S

    def __init__(self, remember: Remember, ctx: WorkerContext, has_written: HasWritten | None = None) -> None:
        """Take the keeper, and whom to ask for vectors; without him they are believed."""
        super().__init__(INTERNAL_EVENT_MODELS, ctx)
        self._remember = remember
        self._has_written = has_written

    async def begin(self, record: Record) -> Awaitable[int]:
        """Apply one event."""
        event = await self._believed(await self.read(record), record.partition)

        async def remember() -> Sequence[MemoryEvent]:
            return [] if event is None else self._applied(event, record.partition)

        events = await until_available(remember, "storage", self._ctx.meters, at_most_s=STORAGE_TIMEOUT_S)
        safe = pending_memory_writes(self._ctx)
        boundary = (record.key or b"").decode()
        safe += [await self._ctx.publisher.send(out) for out in derived_events(self._ctx, boundary, events)]
        self._ctx.words.set_applied(record.partition, record.topic, record.offset + 1)
        return _then(await_all(safe), record.partition)

    async def settle(self, finished: Sequence[int]) -> None:
        """Commit the word index of the partitions that were written."""
        await _commit(self._ctx, finished)

    async def _believed(self, event: InternalEvent | None, partition: int) -> InternalEvent | None:
        """The event; where it tells of a vector that the index does not have, one that has it made again."""
        ask = self._has_written
        if ask is None or not isinstance(event, Embedded) or not self._is_doubted(event, partition):
            return event
        is_there = await until_available(partial(ask, event), "vector index", self._ctx.meters)
        return event if is_there else event.model_copy(update={"status": "stale"})

    def _is_doubted(self, event: Embedded, partition: int) -> bool:
        """Whether a memory would be ready by an event of another run."""
        if event.status != "ready" or event.run == self._ctx.worker_run_id:
            return False
        memory = self._ctx.memories.get(partition, event.memory_id)
        return memory is not None and (memory.mode, memory.content_hash) == (event.mode, event.content_hash)

    def _applied(self, event: InternalEvent, partition: int) -> Sequence[MemoryEvent]:
        if isinstance(event, Consolidated):
            return []
        if isinstance(event, Distilled | ItemsMerged):
            return self._remember.consolidated(event, partition)
        if isinstance(event, Embedded):
            after = self._remember.embedded(event, partition)
            return [] if after is None else [after]
        noted = self._remember.understood(event, partition)
        if noted.agrees_with_default is not None:
            self._ctx.meters.usage.model_answered(agrees=noted.agrees_with_default)
        return noted.events


async def _commit(ctx: WorkerContext, partitions: Sequence[int]) -> None:
    async def commit() -> None:
        for partition in set(partitions):
            async with ctx.unsafe[partition]:
                ctx.words.commit(partition)

    await until_available(commit, "storage", ctx.meters, at_most_s=STORAGE_TIMEOUT_S)


def derived_events(ctx: WorkerContext, boundary: str, events: Sequence[MemoryEvent]) -> list[Outgoing]:
    """What must follow a write, as it is published: to the indexer, or to those who keep more of a turn."""
    topics = ctx.topics
    return [
        event_out(topics.learned if isinstance(event, Learned) else topics.remembered, boundary, event)
        for event in events
    ]


def pending_memory_writes(ctx: WorkerContext) -> list[Awaitable[object]]:
    """What must be awaited for the keeper's writes since the last call."""
    return [*ctx.memories.pending_writes(), *ctx.claims.pending_writes()]


async def _then(finishing: Awaitable[object], partition: int) -> int:
    await finishing
    return partition
