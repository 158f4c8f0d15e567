"""Copy logs into another deployment, so that its worker makes the same memories of them.

Guaranteed:
- The records of one boundary are written in the order of their logs, and between logs in the order of their times
  (`PartitionLogs`). A command is written when all turns before it are applied, and later records when it has taken
  effect; the trigger of a consolidation also waits for the vectors before it.
- A record is written once, even if this process is killed at any moment: a copied record names its origin, and a
  continued run looks in the target for records written since the position was last saved. The position file may be
  behind, or lost: the target knows its copies, only slower.
- A revision of the pipelines is written when all records with earlier times are applied.
- Boundaries do not wait for each other within a batch.
"""

import asyncio
import math
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Self

from modestream_client import MemoryServiceError
from pydantic import BaseModel, ValidationError

from operations.copy.entry_builder import (
    LOGS,
    CopiedRecord,
    Entry,
    EntryBuilder,
    LeftOut,
    Log,
    LogSource,
    LogTarget,
    Outcome,
    Positions,
)
from operations.deployment import at_most
from schemas.messages.records import Record
from streams.adapters.durable_files import write_durably
from streams.wire.partitioning import partition_of

READ_AHEAD = 500


@dataclass(slots=True)
class PartitionPosition:
    """The next offset to copy of each log of one partition."""

    offsets: dict[Log, int] = field(default_factory=dict)


class PartitionLogs:
    """The logs of one partition, merged.

    Turns, commands and triggers are three topics without a common order. Records of one log keep the order of their
    offsets. Across logs, the next record is the one with the earliest timestamp among the first unread records of the
    logs. A record is returned only if the previous check of the ends already covered it: all records written before it,
    in any log, have then been seen.
    """

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

        `seen_ends` are the ends at the previous look, `ends` the present ones.
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
        """Read ahead at least one record of a log, if there is one before its end."""
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
        return sum(sum(part.offsets.values()) for part in self._parts.values())

    def offsets(self) -> Positions:
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
        """Read the file; the beginning if the file is missing or unreadable."""
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


BATCH_SIZE = 500
"""Records of one partition between two saved positions."""

BOUNDARIES_AT_ONCE = 32

TURNS_AT_ONCE = 100
"""Turns of one boundary handed to the producer before the first is acknowledged."""

NOTHING = Outcome()
"""The outcome before any log is read."""

MAX_NAMED_REFUSALS = 20
"""Refused commands listed by their place; more are counted."""

NEARLY_S = 2.0
"""A copy is nearly complete once a pass over all records present at its start takes less than this."""

END_POLL_INTERVAL_S = 0.2
"""Interval between checks of the ends of the logs, when all known records are copied."""


@dataclass(slots=True)
class CopyReport:
    """Result of a copy: `counts` by log, and of skipped records by reason; some of the refused commands.

    `lost`: some of the records that the target can't take, over all runs of this copy.
    """

    counts: Counter[str] = field(default_factory=Counter)
    refusals: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def refused(self, entry: Entry, why: str) -> None:
        """Count a command that the target refused for its content, as the source has."""
        self.counts["refused"] += 1
        self._name(self.refusals, entry, why)

    def lose(self, entry: Entry, problem: MemoryServiceError) -> None:
        """Count a record that the target can't take, or can't execute."""
        self.counts["lost"] += 1
        self._name(self.lost, entry, f"{problem.code}: {problem.message}")

    def _name(self, examples: list[str], entry: Entry, why: str) -> None:
        if len(examples) < MAX_NAMED_REFUSALS:
            log, partition, offset = entry.origin
            examples.append(f"{log} {partition}:{offset}: {why}")


class Copier:
    """Copies from one source to one target."""

    def __init__(
        self,
        source: LogSource,
        target: LogTarget,
        builder: EntryBuilder,
        position: CopyPosition,
        outcome: Outcome = NOTHING,
        *,
        saved: Callable[[CopyPosition], None] = lambda _: None,
        advanced: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> None:
        """`outcome`: the outcome of every request in the source's logs.

        `saved` stores the position after each batch; `advanced` gets the records done and the total.
        """
        self._outcome = outcome
        self._source, self._target, self._builder = source, target, builder
        self._position = position
        self._saved, self._advanced = saved, advanced
        self._parts = [PartitionLogs(source, number, position.part(number)) for number in range(source.partitions)]
        self._written: set[CopiedRecord] = set()
        self._floor: Positions = {}
        self._last_turn: dict[str, int] = {}
        # Saved with the position: a later run does not retry them.
        self.report = CopyReport(lost=position.lost)

    async def resume(self) -> None:
        """Find the records copied since the position was saved, and wait until they have taken effect.

        Raises ValueError for a target with other turns, which might be mixed up.
        """
        self._written = set(await self._target.copied_since(self._position.target_ends))
        self._floor = await self._target.ends()
        is_continued = bool(self._written or self._position.target_ends)
        if not is_continued and any(end for (log, _), end in self._floor.items() if log == "turns"):
            raise ValueError("the new prefix has turns already that were not copied: choose another one")
        # Later commands may name memories of turns copied by an earlier process.
        for number in range(self._source.partitions if self._builder.changes_ids else 0):
            offset, end = 0, self._position.part(number).offsets.get("turns", 0)
            while offset < end:
                records, offset = await self._source.read(("turns", number), offset, READ_AHEAD)
                for record in records:
                    self._builder.build("turns", record)
        if any(self._floor.values()):
            await self._target.wait_settled()

    async def run(self, *, follow: bool = False) -> None:
        """Copy until only records of the last seconds are left; with `follow` continue until cancelled."""
        seen_ends, ends = await self._source.ends(), await self._source.ends()
        goal, began = ends, time.monotonic()
        while True:
            written = await self._target.revision_keys()
            for revision in [candidate for candidate in await self._source.revisions() if candidate.key not in written]:
                await self._copy(seen_ends, ends, revision.timestamp_ms)
                # Earlier records are prepared by the former revision.
                await self._target.wait_settled(turns=True)
                await self._target.set_revision(revision)
                self.report.counts["revisions"] += 1
            await self._copy(seen_ends, ends, math.inf)
            if not follow and all(seen_ends[place] >= end for place, end in goal.items()):
                if seen_ends == ends or time.monotonic() - began < NEARLY_S:
                    return
                # While the log is written to, its end is never reached.
                goal, began = ends, time.monotonic()
            if seen_ends == ends:
                await asyncio.sleep(END_POLL_INTERVAL_S)
            seen_ends, ends = ends, await self._source.ends()

    async def _copy(self, seen_ends: Positions, ends: Positions, before_ms: float) -> None:
        while await self._batch(seen_ends, ends, before_ms):
            self._advanced(self._position.done(), sum(ends.values()))

    async def _batch(self, seen_ends: Positions, ends: Positions, before_ms: float) -> int:
        """Copy one batch of each partition; return the number of records, copied or not."""
        entries: list[Entry] = []
        taken = 0
        for part in self._parts:
            for log, record in await part.take(seen_ends, ends, BATCH_SIZE, before_ms):
                taken += 1
                built = self._builder.build(log, record)
                if isinstance(built, LeftOut):
                    self.report.counts[built.why] += 1
                elif built.copied in self._written:
                    self._written.discard(built.copied)
                    self.report.counts["already copied"] += 1
                    await self._keep_distilled(built)
                else:
                    entries.append(built)
        if taken:
            by_boundary: defaultdict[str, list[Entry]] = defaultdict(list)
            for entry in entries:
                by_boundary[entry.boundary].append(entry)
            await at_most(BOUNDARIES_AT_ONCE, by_boundary.values(), self._write_boundary)
            self._position.target_ends = await self._target.ends()
            self._saved(self._position)
        return taken

    async def _write_boundary(self, entries: Sequence[Entry]) -> None:
        for is_turns, run in groupby(entries, key=lambda entry: entry.log == "turns"):
            several = list(run)
            if is_turns:
                for start in range(0, len(several), TURNS_AT_ONCE):
                    await self._write_turns(several[start : start + TURNS_AT_ONCE])
            else:
                for entry in several:
                    await self._carry_out(entry)

    async def _write_turns(self, turns: Sequence[Entry]) -> None:
        async def write(entry: Entry) -> int:
            try:
                return await self._target.write(entry)
            except MemoryServiceError as problem:
                self.report.lose(entry, problem)
                return -1

        # Tasks start in the order of their creation, and the target writes the records of one key in that order.
        offsets = await asyncio.gather(*map(write, turns))
        self._last_turn[turns[-1].boundary] = max(offsets)
        written = [turn for turn, offset in zip(turns, offsets, strict=True) if offset >= 0]
        self.report.counts["turns"] += sum(not turn.is_forgotten for turn in written)
        self.report.counts["forgotten"] += sum(turn.is_forgotten for turn in written)

    async def _carry_out(self, entry: Entry) -> None:
        await self._wait_applied(entry)
        if entry.log == "consolidate":
            await self._target.wait_embedded(entry.scope)
        try:
            why = await self._target.carry_out(entry)
        except MemoryServiceError as problem:
            self.report.lose(entry, problem)
            return
        self.report.counts[entry.log] += 1
        if why is not None:
            self.report.refused(entry, why)
        await self._keep_distilled(entry)

    async def _keep_distilled(self, entry: Entry) -> None:
        """Forget distilled memories that exist only in the target: one of their turns was forgotten later.

        Only those of triggers that the source had executed when its outcome was read.
        """
        log, partition, offset = entry.origin
        if log == "consolidate" and offset < self._outcome.consolidated.get(partition, 0):
            extra = await self._target.keep_distilled(entry.scope, self._outcome.distilled)
            self.report.counts["distilled of forgotten ones"] += extra

    async def _wait_applied(self, entry: Entry) -> None:
        """Wait until the boundary's earlier turns are applied, all of the partition's if another process wrote them."""
        partition = partition_of(entry.boundary.encode(), self._target.partitions)
        earlier = self._floor.get(("turns", partition), 0) - 1
        offset = self._last_turn.pop(entry.boundary, earlier)
        if offset >= 0:
            await self._target.wait_applied(entry.scope, offset)
