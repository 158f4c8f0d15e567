"""The log of turns: its end, for which a command that forgets waits, and its archive.

Turns and commands are two topics without a common order. A turn that was acknowledged to its producer before the
command was sent lies before the end of the log at the time the command is read.

Guaranteed: of each turn that is remembered the archive gets the record of its current text, unchanged but for the time
of an edited one, of a forgotten one its identity alone. The table `memories` decides, and is asked in the moment in
which the record is handed over: a `forget` that comes later is written later.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from pydantic_core import from_json, to_json

from agents.memory.items import WriteStep
from agents.rules.memory.versions import TurnIdentity, identify_turn
from schemas.failures import Rejected, Unavailable
from schemas.internal.events import Forgotten
from schemas.messages.decoding import decode
from schemas.messages.records import Outgoing, Record
from schemas.messages.turns import Turn
from schemas.moments import moment_of
from schemas.state.memories import Memory
from streams.flow.stores import MemoryStore
from streams.partition.commit import AppliedOffsets
from streams.wire.archived_turns import archived_turn, forgotten_record, forgotten_turn
from streams.wire.partitioning import partition_of

CATCH_UP_POLL_INTERVAL_S = 2.0
"""Pause of turns after which the log is asked whether records are left: its last offsets may hold none, as after a
transaction."""

TAKEN_POLL_S = 0.1
"""The same for the turns of a partition that was just taken, for which a caller waits."""

LOG_TIMEOUT_S = 30.0
"""Maximum time to retry reading the end of the log for a command; after that the caller may send the command again."""


class TurnsLog(Protocol):
    """The log of turns. Calls raise Unavailable if Kafka does not answer or the partition is no longer assigned."""

    async def end(self, partition: int) -> int:
        """Return the offset after the last record that may be read."""

    async def end_with_transactions(self, partition: int) -> int:
        """Return the offset after the last written record.

        Raises Unavailable if a transaction stays open: its records, and those after it, can't be read yet.
        """

    def is_assigned(self, partition: int) -> bool:
        """True if the partition is assigned to this worker."""

    async def is_delivered(self, partition: int, end: int, applied: int) -> bool:
        """True if every record before `end` was delivered, and none of them lies at `applied` or after it."""


async def wait_until_applied(
    log: TurnsLog, progress: AppliedOffsets, partition: int, end: int, boundary: str, poll_s: float | None = None
) -> None:
    """Wait until every turn of a boundary before `end` is applied; `poll_s` replaces `CATCH_UP_POLL_INTERVAL_S`."""
    before = None
    while (applied := progress.next_offset(partition, boundary) or 0) < end:
        if await progress.reached(partition, end - 1, poll_s or CATCH_UP_POLL_INTERVAL_S, boundary):
            return
        # Twice the same offset: a record that was just delivered may not be applied yet.
        if before == applied and await log.is_delivered(partition, end, applied):
            return
        before = applied


class TakenTurns:
    """The turns that the log of a partition had when it was taken.

    A killed worker may have answered some that it had not committed: they are delivered again, and what follows them
    names their memories and modes.
    """

    def __init__(self, log: TurnsLog, progress: AppliedOffsets) -> None:
        self._log = log
        self._progress = progress
        self._ends: dict[int, tuple[int, int]] = {}

    async def applied(self, partition: int, boundary: str, within_s: float) -> None:
        """Wait until those of a boundary are applied, at most `within_s` seconds. Raises Unavailable."""
        starts = self._progress.starts[partition]
        if self._ends.get(partition, (-1, 0))[0] != starts:
            # It takes some 0.2 s: the consumer's connection waits for records meanwhile.
            self._ends[partition] = starts, await self._log.end(partition)
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                end = self._ends[partition][1]
                await wait_until_applied(self._log, self._progress, partition, end, boundary, TAKEN_POLL_S)


class LogEnds:
    """Knows how far the log reached when it was last asked: tells offsets that were never given."""

    def __init__(self, log: TurnsLog) -> None:
        self._log = log
        self._ends: dict[int, int] = {}
        self._asked_at: dict[int, float] = {}
        self._asking: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def is_beyond(self, partition: int, offset: int) -> bool:
        """True if the log did not reach this offset at a time after the call. False if Kafka does not answer.

        Many calls share one request to the broker, but none an answer to a request from before it: an offset that was
        given just now is never beyond.
        """
        called_at = asyncio.get_running_loop().time()
        if offset < self._ends.get(partition, 0):
            return False
        async with self._asking[partition]:
            if self._asked_at.get(partition, -1.0) < called_at:
                asked_at = asyncio.get_running_loop().time()
                try:
                    self._ends[partition] = await self._log.end(partition)
                except Unavailable:
                    return False
                self._asked_at[partition] = asked_at
        return offset >= self._ends[partition]


class ArchivedTurns:
    """Decides about the records of the log."""

    def __init__(
        self, topic: str, kinds: Mapping[str, type[Any]], partitions: int, memories: MemoryStore, *, keeps_unknown: bool
    ) -> None:
        """`kinds` are those of turns. `keeps_unknown`: archive valid turns that the table does not have.

        Such turns were refused, or their row is lost, as `verify` tells.
        """
        self._topic = topic
        self._kinds = kinds
        self._partitions = partitions
        self._memories = memories
        self._keeps_unknown = keeps_unknown

    def of(self, record: Record) -> Outgoing | None:
        """Return what is archived of a handled record of the log; None if a later one counts, or none does."""
        try:
            turn = decode(record.value, self._kinds)
        except Rejected:
            return None
        if partition_of(turn.scope.boundary.encode(), self._partitions) != record.partition:
            # It was moved, and lies where it belongs.
            return None
        identity = identify_turn(turn, moment_of(record.timestamp_ms))
        memory = self._memories.get(record.partition, identity.memory_id)
        if memory is None:
            if self._memories.is_forgotten(record.partition, identity.memory_id):
                return self._forgotten(turn, identity, record)
            return archived_turn(self._topic, identity.memory_id, record) if self._keeps_unknown else None
        if memory.latest != record.offset:
            # A later record has the text, or this one repeats it or was refused.
            return None
        return archived_turn(self._topic, identity.memory_id, _with_time(record, turn, memory))

    def redacted(self, record: Record) -> Outgoing | None:
        """Return what replaces an archived turn that was forgotten since; None if there is nothing to replace.

        `record` is the record of the log. A killed worker may not have replaced it.
        """
        try:
            turn = decode(record.value, self._kinds)
        except Rejected:
            return None
        identity = identify_turn(turn, moment_of(record.timestamp_ms))
        if not self._memories.is_forgotten(record.partition, identity.memory_id):
            return None
        out = self._forgotten(turn, identity, record)
        return None if out.value == record.value else out

    def _forgotten(self, turn: Turn, identity: TurnIdentity, record: Record) -> Outgoing:
        scope = turn.scope.model_dump()
        value = forgotten_turn(identity.turn_id, scope, turn.conversation_id, turn.role, turn.occurred_at, turn.mode)
        place = (value, record.partition, turn.scope.boundary, record.offset, identity.recorded_at)
        return archived_turn(self._topic, identity.memory_id, forgotten_record(*place))


def _with_time(record: Record, turn: Turn, memory: Memory) -> Record:
    """Return the record of an edit that says when the turn was said: the record that did is not archived."""
    if turn.occurred_at is not None or memory.version == 1:
        return record
    return replace(record, value=to_json({**from_json(record.value or b""), "occurred_at": memory.occurred_at}))


def archive_forgotten(topic: str, partition: int, step: WriteStep) -> Sequence[Outgoing]:
    """Return what replaces the archived record of a turn that a step has forgotten, if there is one."""
    memory, events = step
    if memory is None:
        return []
    is_forgotten = any(isinstance(event, Forgotten) and event.memory_id == memory.memory_id for event in events)
    return [_forgotten(topic, partition, memory)] if is_forgotten and memory.origin == "said" else []


def _forgotten(topic: str, partition: int, memory: Memory) -> Outgoing:
    turn_id, conversation_id, role = memory.turn_id or "", memory.conversation_id or "", memory.role or "user"
    value = forgotten_turn(turn_id, memory.scope, conversation_id, role, memory.occurred_at, memory.mode)
    record = forgotten_record(value, partition, memory.boundary, memory.latest, memory.latest_at)
    return archived_turn(topic, memory.memory_id, record)


class TurnsHistory(Protocol):
    """The topics `turns` and `archive`, by partition. Calls raise Unavailable while Kafka does not answer."""

    async def handled(self, partition: int) -> int:
        """Return the offset before which every turn is handled and committed."""

    async def begin(self, partition: int) -> int:
        """Return the offset of the first turn that the log has."""

    async def first_since(self, partition: int, moment_ms: int) -> int | None:
        """Return the offset of the first turn that was written at a time or later; None if there is none."""

    async def read(self, partition: int, offset: int) -> tuple[Sequence[Record], int]:
        """Return some turns from an offset on, and the offset to read next; none sometimes before the end, too."""

    async def read_archive(self, partition: int, offset: int) -> tuple[Sequence[Record], int]:
        """Return some records of the archive from an offset on, and the offset to read next."""

    async def archive_end(self, partition: int) -> int:
        """Return the offset after the last record of the archive."""

    async def archived(self, partition: int) -> int:
        """Return the offset before which every turn is archived, as the archive says; 0 for an empty one."""

    async def delete_before(self, partition: int, offset: int) -> None:
        """Delete the turns before an offset from the log, for good."""
