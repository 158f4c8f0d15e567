"""What the log of turns holds of a partition, and what the table `memories` holds of it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from agents.rules.memory.versions import identify_turn
from operations.comparison import Differences, differences
from schemas.failures import Rejected
from schemas.messages.decoding import decode
from schemas.messages.records import Record
from schemas.messages.turns import Turn
from schemas.moments import moment_of
from schemas.state.memories import Origin, TextVersion
from streams.tables.memory_table import TOMBSTONES
from streams.wire.partitioning import original_record, partition_of

DeadPlace = tuple[int, int]
"""Partition and offset of a turn that became a dead letter."""


@dataclass(frozen=True, slots=True)
class LoggedTurn:
    """The last record of a turn: its offset, and the hash of its text."""

    boundary: str
    offset: int
    text_hash: str


class LoggedTurns:
    """The turns of one partition's log, as far as they were accepted."""

    def __init__(
        self, kinds: Mapping[str, type[Turn]], partitions: int, dead: Collection[DeadPlace], boundaries: Collection[str]
    ) -> None:
        """`dead` are the places of dead letters; only turns of `boundaries` are kept."""
        self._kinds = kinds
        self._partitions = partitions
        self._dead = dead
        self._boundaries = boundaries
        self.turns: dict[str, LoggedTurn] = {}

    def take(self, record: Record) -> None:
        """Take the next record; one that was refused or lies in another partition is none of it."""
        origin = original_record(record)
        if (origin.partition, origin.offset) in self._dead:
            return
        try:
            turn = decode(record.value, self._kinds)
        except Rejected:
            return
        boundary = turn.scope.boundary
        if boundary not in self._boundaries or partition_of(boundary.encode(), self._partitions) != record.partition:
            return
        identity = identify_turn(turn, moment_of(record.timestamp_ms))
        self.turns[identity.memory_id] = LoggedTurn(boundary, record.offset, identity.text_hash)


class StoredRow(BaseModel):
    """What is read of a row of the table."""

    boundary: str
    origin: Origin = "said"
    versions: tuple[TextVersion, ...] = ()
    current: int = 0
    latest: int = -1

    @property
    def text_hash(self) -> str:
        """The hash of the current text."""
        return self.versions[self.current].text_hash if self.versions else ""


class StoredRows:
    """The rows of one partition of the table, from its changelog."""

    def __init__(self, boundaries: Collection[str]) -> None:
        self._boundaries = boundaries
        self.rows: dict[str, StoredRow] = {}
        self.tombstones: set[str] = set()

    def take(self, record: Record) -> None:
        """Take the next value of a row."""
        memory_id, value = (record.key or b"").decode(), record.value or b""
        self.rows.pop(memory_id, None)
        self.tombstones.discard(memory_id)
        if value.startswith(TOMBSTONES):
            self.tombstones.add(memory_id)
            return
        try:
            row = StoredRow.model_validate_json(value)
        except ValidationError:
            return
        if row.boundary in self._boundaries:
            self.rows[memory_id] = row


def find_gaps(logged: LoggedTurns, stored: StoredRows, boundary: str, end: int) -> Differences:
    """Compare log and table of a boundary; `end` is the offset up to which the log was read. Pure.

    A tombstone is no gap: the turn was forgotten, or replaced. `extra` are rows whose turns the log does not have (any
    more): a retention time has removed them, or a log was lost; nothing can be done about them.
    """
    turns = {
        memory_id: turn
        for memory_id, turn in logged.turns.items()
        if turn.boundary == boundary and memory_id not in stored.tombstones
    }
    rows = {
        memory_id: row
        for memory_id, row in stored.rows.items()
        if memory_id in turns or (row.boundary == boundary and row.origin == "said" and row.latest < end)
    }
    return differences(turns, rows, lambda turn, row: row.text_hash == turn.text_hash or row.latest > turn.offset)
