"""The keeper of memories on its four topics: turns, what the indexer did, what was understood, what commands change.

What is applied can be read at once; the word index is committed, and the changelog written, before anything is
acknowledged. Each topic by itself is applied in order.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import chain

from agents.remember import Accepted, Follows, Remember
from agents.rules.shown import shown_memory
from schemas.changes import Change
from schemas.events import Embedded, Understood
from schemas.failures import Unavailable
from schemas.memories import Memory
from schemas.records import Outgoing, Record
from schemas.replies import Answer, Warned
from schemas.turns import Turn
from streams.flow.awaiting import all_of
from streams.flow.patience import until_available
from streams.flow.requests import Asked, Channel, Handle, Handled
from streams.flow.steps import Internal, Requested, event_out
from streams.flow.surroundings import Surroundings

COMMIT_EVERY_S = 0.05
"""Between two commits of the word index; only acknowledgements wait for them, not readers."""

STORAGE_S = 30.0
"""How long our own disk is waited for. A full one may get room; what stays broken needs a new start of the process."""

CHANGED_AT_ONCE = 50
"""Memories that a command changes before others have their turn: some 20 ms."""

Changed = Callable[[Change, int], None]
"""Is told of every change that was made in a partition."""

FORGOTTEN = Warned("forgotten", "this turn was forgotten and stays so; nothing was stored")


class Applied(Requested):
    """Requests that change memories: each is noted as applied, whatever became of it, and committed before acks."""

    window = 1024
    pause_s = COMMIT_EVERY_S

    def __init__(self, channel: Channel, handle: Handle, around: Surroundings) -> None:
        super().__init__(channel, handle, around)
        self._around = around

    async def begin(self, record: Record) -> Awaitable[int]:
        """Apply the record."""
        finishing = await super().begin(record)
        self._around.words.set_applied(record.partition, record.topic, record.offset + 1)
        return _then(finishing, record.partition)

    async def settle(self, finished: Sequence[int]) -> None:
        """Commit the word index of the partitions that were written."""
        await _commit(self._around, finished)


class RememberTurns(Applied):
    """Turns into memories, one after another; what is applied can be read at once."""

    def __init__(self, channel: Channel, remember: Remember, around: Surroundings) -> None:
        super().__init__(channel, self._handle, around)
        self._remember = remember

    async def begin(self, record: Record) -> Awaitable[int]:
        """Apply the record, and tell those who wait for their own writes."""
        finishing = await super().begin(record)
        self._around.progress.advance(record.partition, record.offset + 1)
        return finishing

    async def _handle(self, turn: Turn, record: Record, _asked: Asked) -> Handled:
        async def remember() -> Accepted:
            return self._remember.turn(turn, record)

        # A full disk is no reason to refuse a turn: it waits, and those behind it.
        accepted = await until_available(remember, "storage", self._around.meters, at_most_s=STORAGE_S)
        safe = self._around.memories.unwritten()
        if accepted.event is not None:
            self._around.meters.usage.decided(accepted.result.mode_source)
        warnings = (FORGOTTEN,) if accepted.forgotten else ()
        events = _follows(self._around, turn.scope.boundary, accepted.event)
        return Handled(Answer(accepted.result, warnings), events, safe)


class RememberEvents(Internal):
    """What the indexer did, and what was understood: one event, one record."""

    window = 1024
    pause_s = COMMIT_EVERY_S

    def __init__(self, remember: Remember, around: Surroundings) -> None:
        super().__init__({"embedded.v1": Embedded, "understood.v1": Understood}, around)
        self._remember = remember

    async def begin(self, record: Record) -> Awaitable[int]:
        """Apply one event."""
        event = await self.read(record)

        async def remember() -> Follows:
            return None if event is None else self._applied(event, record.partition)

        follows = await until_available(remember, "storage", self._around.meters, at_most_s=STORAGE_S)
        safe: list[Awaitable[object]] = list(self._around.memories.unwritten())
        boundary = (record.key or b"").decode()
        safe += [await self._around.publisher.send(out) for out in _follows(self._around, boundary, follows)]
        self._around.words.set_applied(record.partition, record.topic, record.offset + 1)
        return _then(all_of(safe), record.partition)

    async def settle(self, finished: Sequence[int]) -> None:
        """Commit the word index of the partitions that were written."""
        await _commit(self._around, finished)

    def _applied(self, event: Embedded | Understood, partition: int) -> Follows:
        if isinstance(event, Embedded):
            return self._remember.embedded(event, partition)
        noted = self._remember.understood(event, partition)
        if noted.agrees is not None:
            self._around.meters.usage.model_answered(agrees=noted.agrees)
        return noted.event


class Steps:
    """The steps of one change, each tried again while our own disk is full."""

    def __init__(self, remember: Remember, change: Change, partition: int, around: Surroundings) -> None:
        self._remember, self._change, self._partition = remember, change, partition
        self._steps = self._begin()
        self._around = around

    def _begin(self) -> Iterator[tuple[Memory | None, Follows]]:
        again = ((None, event) for event in self._remember.forgotten_before(self._change, self._partition))
        return chain(again, self._remember.changed(self._change, self._partition))

    async def next(self) -> tuple[Memory | None, Follows] | None:
        """The next memory that is changed; None after the last."""
        return await until_available(self._step, "storage", self._around.meters, at_most_s=STORAGE_S)

    async def _step(self) -> tuple[Memory | None, Follows] | None:
        try:
            return next(self._steps, None)
        except Unavailable:
            # What has raised is at its end; begun anew it skips what is done.
            self._steps = self._begin()
            raise


class RememberChanges(Applied):
    """What commands change in memories that are there: all of it, then the command's reply.

    One that was made already and comes again is only answered.
    """

    window = 16
    pause_s = 0.0

    def __init__(self, channel: Channel, remember: Remember, changed: Changed, around: Surroundings) -> None:
        """Take the keeper, and who is told of what was changed."""
        super().__init__(channel, self._handle, around)
        self._remember = remember
        self._changed = changed

    async def _handle(self, change: Change, record: Record, _asked: Asked) -> Handled:
        done = record.offset < self._around.words.applied(record.partition).get(record.topic, 0)
        again = done and change.memory_id is None
        changed, last = (0, None) if again else await self._carried_out(change, record.partition)
        self._changed(change, record.partition)
        return Handled(Answer(_result(change, changed, last)))

    async def _carried_out(self, change: Change, partition: int) -> tuple[int, Memory | None]:
        """Make the change, a few memories at a time; others are handled in between."""
        steps = Steps(self._remember, change, partition, self._around)
        changed: int = 0
        last: Memory | None = None
        while done := await self._some(steps, change.scope.boundary, partition):
            changed, last = changed + len(done), done[-1]
            await asyncio.sleep(0)
        return changed, last

    async def _some(self, steps: Steps, boundary: str, partition: int) -> list[Memory | None]:
        """Change a few memories, and make it safe before the word index may be committed."""
        done: list[Memory | None] = []
        safe: list[Awaitable[object]] = []
        async with self._around.unsafe[partition]:
            while len(done) < CHANGED_AT_ONCE and (step := await steps.next()):
                memory, follows = step
                # Taken before anybody else may write: what is awaited here are the writes of this change.
                safe += self._around.memories.unwritten()
                events = _follows(self._around, boundary, follows)
                safe += [await self._around.publisher.send(out) for out in events]
                done.append(memory)
            await all_of(safe)
        return done


def _result(change: Change, changed: int, last: Memory | None) -> dict[str, object]:
    """What the command is answered with: its own result, the memory, or how many there were."""
    if change.result is None:
        return {} if last is None else shown_memory(last)
    counted = {"forget": "forgotten", "move": "moved"}.get(change.action, "")
    return change.result | ({counted: changed} if counted in change.result else {})


async def _commit(around: Surroundings, partitions: Sequence[int]) -> None:
    async def commit() -> None:
        for partition in set(partitions):
            async with around.unsafe[partition]:
                around.words.commit(partition)

    await until_available(commit, "storage", around.meters, at_most_s=STORAGE_S)


def _follows(around: Surroundings, boundary: str, event: Follows) -> list[Outgoing]:
    return [] if event is None else [event_out(around.topics.remembered, boundary, event)]


async def _then(finishing: Awaitable[object], partition: int) -> int:
    await finishing
    return partition
