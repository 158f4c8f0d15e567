"""The order in which the logs of one partition are copied, and how far a copy has come, as a file.

Turns, commands and triggers are three topics without a common order. Within a log the order is that of the offsets;
between logs the record with the earliest timestamp is next, of the first that each log has left: one with too early a
time comes right behind the one before it. A record is given out when it was already there at the look at the ends
before this one: what was written before it, in whichever log, is then known.

The file may be behind what is written, and may be lost: the target says what was copied, only slower.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ValidationError

from operations.copy.logs import LOGS, Log, LogSource, Positions
from schemas.messages.records import Record
from streams.adapters.durable_files import write_durably

READ_AHEAD = 500
"""Records of a log that are read at once."""


@dataclass(slots=True)
class PartitionPosition:
    """How far one partition is given out: the next offset by log."""

    offsets: dict[Log, int] = field(default_factory=dict)


class PartitionLogs:
    """The logs of one partition, merged."""

    def __init__(self, source: LogSource, partition: int, position: PartitionPosition) -> None:
        self._source = source
        self._partition = partition
        self.position = position
        self._ahead: dict[Log, deque[Record]] = {log: deque() for log in LOGS}
        self._read_until: dict[Log, int] = {log: position.offsets.get(log, 0) for log in LOGS}

    async def take(
        self, seen_ends: Positions, ends: Positions, most: int, before_ms: float = math.inf
    ) -> list[tuple[Log, Record]]:
        """Return the next records, at most `most`, up to the first that is not from before a time.

        `seen_ends` are the ends at the look before, `ends` the present ones.
        """
        taken: list[tuple[Log, Record]] = []
        while len(taken) < most:
            for log in LOGS:
                await self._fill(log, ends.get((log, self._partition), 0))
            waiting = [log for log in LOGS if self._ahead[log]]
            if not waiting:
                break
            # The first of `LOGS` where times are equal.
            earliest = min(waiting, key=lambda log: self._ahead[log][0].timestamp_ms)
            record = self._ahead[earliest][0]
            if record.offset >= seen_ends.get((earliest, self._partition), 0) or record.timestamp_ms >= before_ms:
                break
            self._ahead[earliest].popleft()
            self.position.offsets[earliest] = record.offset + 1
            taken.append((earliest, record))
        return taken

    async def _fill(self, log: Log, end: int) -> None:
        """Have at least one record of a log ahead, if there is one before its end."""
        while not self._ahead[log] and self._read_until[log] < end:
            records, self._read_until[log] = await self._source.read(
                (log, self._partition), self._read_until[log], READ_AHEAD
            )
            self._ahead[log].extend(records)
        if not self._ahead[log]:
            # Offsets without a record, such as those of a transaction's end, are passed.
            self.position.offsets[log] = max(self.position.offsets.get(log, 0), self._read_until[log])


class _Stored(BaseModel):
    offsets: dict[int, dict[Log, int]]
    target: dict[Log, dict[int, int]]
    lost: list[str] = []


class CopyPosition:
    """The position in each partition of the source, and the ends of the target's logs when it was saved."""

    def __init__(self) -> None:
        self._parts: dict[int, PartitionPosition] = {}
        self.target_ends: Positions = {}
        self.lost: list[str] = []
        """Some of the records before the position that the target lacks, each with its place and the reason."""

    def part(self, partition: int) -> PartitionPosition:
        """Return the position of a partition, which `PartitionLogs` moves."""
        return self._parts.setdefault(partition, PartitionPosition())

    def done(self) -> int:
        """Count the offsets that are passed."""
        return sum(sum(part.offsets.values()) for part in self._parts.values())

    def offsets(self) -> Positions:
        """Return the next offset by place."""
        return {(log, number): offset for number, part in self._parts.items() for log, offset in part.offsets.items()}

    def save(self, path: Path) -> None:
        """Write the file; after a power cut it is the former one or this one."""
        target: dict[Log, dict[int, int]] = {log: {} for log in LOGS}
        for (log, partition), end in self.target_ends.items():
            target[log][partition] = end
        offsets = {number: part.offsets for number, part in self._parts.items()}
        stored = _Stored(offsets=offsets, target=target, lost=self.lost)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, stored.model_dump_json())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file; the beginning if there is none, or none that can be read."""
        position = cls()
        try:
            stored = _Stored.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            return position
        for number, offsets in stored.offsets.items():
            position._parts[number] = PartitionPosition(dict(offsets))
        position.lost = stored.lost
        position.target_ends = {
            (log, partition): end for log, ends in stored.target.items() for partition, end in ends.items()
        }
        return position
