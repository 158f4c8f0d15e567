"""Logs in memory, as a copy reads and writes them; the target can die at any of its calls."""

from collections import defaultdict
from collections.abc import Collection, Mapping

from operations.copy.entry_builder import (
    LOGS,
    CopiedRecord,
    Entry,
    Log,
    LogPartition,
    Outcome,
    Positions,
    copied_record,
)
from schemas.messages.records import Record


class Killed(BaseException):
    """Stands for the end of the process."""


class FakeLogSource:
    """Implements `LogSource`; `page` bounds what one read returns."""

    def __init__(self, partitions: int, page: int = 3) -> None:
        self.partitions = partitions
        self._page = page
        self.revised: list[Record] = []
        self.logs: defaultdict[LogPartition, list[Record]] = defaultdict(list)

    def add(self, log: Log, partition: int, timestamp_ms: int, key: str, value: bytes) -> Record:
        several = self.logs[log, partition]
        record = Record(log, partition, len(several), timestamp_ms, key.encode(), value)
        several.append(record)
        return record

    async def ends(self) -> Positions:
        return {(log, number): len(self.logs[log, number]) for log in LOGS for number in range(self.partitions)}

    async def read(self, place: LogPartition, offset: int, most: int) -> tuple[list[Record], int]:
        records = self.logs[place][offset : offset + min(most, self._page)]
        return records, offset + len(records)

    async def revisions(self) -> list[Record]:
        return self.revised

    async def outcome(self) -> Outcome:
        return Outcome()


class FakeLogTarget:
    """Implements `LogTarget`: applies what is written only when it is waited for, and dies after `lives` calls."""

    def __init__(self) -> None:
        self.partitions = 1
        self.written: list[tuple[Entry, int]] = []
        self.applied = -1
        self.lives = -1
        self.settled = 0
        self.distilled: list[str] = []
        self.revised: list[tuple[Record, int]] = []
        """Revisions, each with the number of records that were written before."""

    def entries(self, log: Log) -> list[Entry]:
        return [entry for entry, _ in self.written if entry.log == log]

    def live(self, lives: int = -1) -> None:
        """Begin a new process, which dies after so many calls."""
        self.lives = lives

    async def ends(self) -> Positions:
        return {(log, 0): len(self.entries(log)) for log in LOGS}

    async def copied_since(self, since: Positions) -> frozenset[CopiedRecord]:
        found = set()
        for log in LOGS:
            for entry in self.entries(log)[since.get((log, 0), 0) :]:
                record = Record(log, 0, 0, entry.timestamp_ms, entry.boundary.encode(), entry.value, entry.headers)
                if (copied := copied_record(log, record)) is not None:
                    found.add(copied)
        return frozenset(found)

    async def write(self, entry: Entry) -> int:
        self._die()
        offset = len(self.entries("turns"))
        self.written.append((entry, offset))
        self._die()
        return offset

    async def carry_out(self, entry: Entry) -> str | None:
        self._die()
        own = [
            offset for earlier, offset in self.written if earlier.log == "turns" and earlier.boundary == entry.boundary
        ]
        assert max(own, default=-1) <= self.applied, "a command before the turns that were written before it"
        self.written.append((entry, len(self.entries(entry.log))))
        self._die()
        return None

    async def wait_applied(self, _scope: Mapping[str, str], offset: int) -> None:
        self._die()
        self.applied = max(self.applied, offset)

    async def wait_embedded(self, _scope: Mapping[str, str]) -> None:
        self._die()

    async def keep_distilled(self, _scope: Mapping[str, str], kept: Collection[str]) -> int:
        self.distilled = [memory for memory in self.distilled if memory in kept]
        return 0

    async def wait_settled(self, *, turns: bool = False) -> None:
        self._die()
        self.settled += 1
        if turns:
            self.applied = len(self.entries("turns")) - 1

    async def revision_keys(self) -> frozenset[bytes | None]:
        return frozenset(revision.key for revision, _ in self.revised)

    async def set_revision(self, revision: Record) -> None:
        self._die()
        assert self.applied == len(self.entries("turns")) - 1, "a revision before the turns of the former one"
        self.revised.append((revision, len(self.written)))
        self._die()

    def _die(self) -> None:
        if self.lives == 0:
            raise Killed
        self.lives -= 1
