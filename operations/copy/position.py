"""How far a copy has come, as a file: what the next process continues behind.

The file may be behind what is written, and may be lost: the target says what was copied, only slower.
"""

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ValidationError

from operations.copy.logs import LOGS, Log, LogPartition, Positions
from operations.copy.merge import PartitionPosition
from streams.adapters.durable_files import write_durably


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
        position.target_ends = {place: end for log, ends in stored.target.items() for place, end in _places(log, ends)}
        return position


def _places(log: Log, ends: dict[int, int]) -> list[tuple[LogPartition, int]]:
    return [((log, partition), end) for partition, end in ends.items()]
