"""The archive of turns: what it is to have of a turn, by its record in the log, and when it is forgotten.

Guaranteed: of each turn that is remembered the archive gets the record of its current text, unchanged but for the time
of an edited one, of a forgotten one its identity alone. The table `memories` decides, and is asked in the moment in
which the record is handed over: a `forget` that comes later is written later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from pydantic_core import from_json, to_json

from agents.memory.items import WriteStep
from agents.rules.memory.versions import TurnIdentity, identify_turn
from schemas.failures import Rejected
from schemas.internal.events import Forgotten
from schemas.messages.decoding import decode
from schemas.messages.records import Outgoing, Record
from schemas.messages.turns import Turn
from schemas.moments import moment_of
from schemas.state.memories import Memory
from streams.flow.stores.tables import MemoryStore
from streams.wire.archived_turns import archived_turn, forgotten_record, forgotten_turn
from streams.wire.partitioning import partition_of


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
