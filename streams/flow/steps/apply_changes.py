"""The keeper of memories on its topic of changes: what commands change in memories, each answered when it is done.

A change is made a few memories at a time, each with its events safe before the word index may be committed, and others
are handled in between. One that was cut off by a kill comes again, and goes on where it was.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agents.memory.items import WriteStep
from agents.memory.remember import Remember
from agents.rules.memory.views import shown_memory
from schemas.changes import Change
from schemas.events import Forgotten
from schemas.failures import Unavailable
from schemas.memories import Memory
from schemas.records import Record
from schemas.replies import SuccessReply
from streams.flow.requests.pipeline import Channel, HandlerResult, ReplyOptions
from streams.flow.steps.remember import STORAGE_TIMEOUT_S, Applied, derived_events, pending_memory_writes
from streams.flow.support.awaiting import await_all
from streams.flow.support.backoff import until_available
from streams.flow.support.turns_log import wait_until_applied
from streams.flow.worker_context import WorkerContext

CHANGE_BATCH_SIZE = 50
"""Memories that a command changes before others have their turn: some 20 ms."""

OnChanged = Callable[[Change, int], None]
"""Is told of every change that was made in a partition."""


class ChangeSteps:
    """The steps of one change, each tried again while our own disk is full."""

    def __init__(self, remember: Remember, change: Change, partition: int, ctx: WorkerContext) -> None:
        self._remember, self._change, self._partition = remember, change, partition
        self._steps = remember.changed(change, partition)
        self._ctx = ctx

    async def next(self) -> WriteStep | None:
        """The next step; None after the last."""
        return await until_available(self._step, "storage", self._ctx.meters, at_most_s=STORAGE_TIMEOUT_S)

    async def _step(self) -> WriteStep | None:
        try:
            return next(self._steps, None)
        except Unavailable:
            # A generator that has raised gives nothing more. A new one skips what is done.
            self._steps = self._remember.changed(self._change, self._partition)
            raise


@dataclass(slots=True)
class ChangeTally:
    """What a change has done so far: how many memories, and the last of them."""

    action: str
    count: int = 0
    last: Memory | None = None

    def add(self, step: WriteStep) -> None:
        """Count a step, unless nothing was done in it; what is served again was not forgotten."""
        memory, events = step
        forgotten = any(isinstance(event, Forgotten) for event in events)
        if forgotten if self.action == "forget" else memory is not None:
            self.count += 1
            self.last = memory


class RememberChanges(Applied):
    """What commands change in memories that are there: all of it, then the command's reply.

    One that was made already and comes again is only answered.
    """

    window = 16
    pause_s = 0.0

    def __init__(self, channel: Channel, remember: Remember, changed: OnChanged, ctx: WorkerContext) -> None:
        """Take the keeper, and who is told of what was changed."""
        super().__init__(channel, self._handle, ctx)
        self._remember = remember
        self._changed = changed
        self._until: dict[int, int] = {}
        """Where the changes end that were made before they were delivered, by partition."""

    async def _handle(self, change: Change, record: Record, _asked: ReplyOptions) -> HandlerResult:
        again = self._is_done(record) and change.memory_id is None
        carried_out = ChangeTally(change.action) if again else await self._carried_out(change, record.partition)
        self._changed(change, record.partition)
        return HandlerResult(SuccessReply(_result(change, carried_out)))

    def _is_done(self, record: Record) -> bool:
        """Whether a record is delivered again: those before it, too, may have been, and set back what is applied."""
        applied = self._ctx.words.applied(record.partition).get(record.topic, 0)
        self._until[record.partition] = max(self._until.get(record.partition, 0), applied)
        return record.offset < self._until[record.partition]

    async def _carried_out(self, change: Change, partition: int) -> ChangeTally:
        """Make the change, a few memories at a time; others are handled in between."""
        steps = ChangeSteps(self._remember, await self._caught_up(change, partition), partition, self._ctx)
        done = ChangeTally(change.action)
        more = True
        while more:
            more = await self._some(steps, done, change.scope.boundary, partition)
            await asyncio.sleep(0)
        return done

    async def _caught_up(self, change: Change, partition: int) -> Change:
        """The change with the turns that it may not touch, once all that were said before it are applied."""
        log, progress = self._ctx.turns_log, self._ctx.progress
        if log is None or change.turns_before is None:
            return change
        await wait_until_applied(log, progress, partition, change.turns_before)
        return change.model_copy(update={"turns_until": progress.next_offset(partition)})

    async def _some(self, steps: ChangeSteps, done: ChangeTally, boundary: str, partition: int) -> bool:
        """Take a few steps, and make them safe before the word index may be committed; says whether there were any."""
        taken = 0
        safe: list[Awaitable[object]] = []
        async with self._ctx.unsafe[partition]:
            while taken < CHANGE_BATCH_SIZE and (step := await steps.next()):
                # Taken before anybody else may write: what is awaited here are the writes of this change.
                safe += pending_memory_writes(self._ctx)
                safe += [await self._ctx.publisher.send(out) for out in derived_events(self._ctx, boundary, step[1])]
                done.add(step)
                taken += 1
            await await_all(safe)
        return taken > 0


def _result(change: Change, done: ChangeTally) -> dict[str, object]:
    """What the command is answered with: its own result, the memory, or how many there were."""
    if change.result is None:
        return {} if done.last is None else shown_memory(done.last)
    counted = {"forget": "forgotten", "move": "moved"}.get(change.action, "")
    return change.result | ({counted: done.count} if counted in change.result else {})
