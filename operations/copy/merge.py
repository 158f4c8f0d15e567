"""The order in which the logs of one partition are copied.

Turns, commands and triggers are three topics without a common order. Within a log the order is that of the offsets;
between logs the record with the earliest timestamp is next, of the first that each log has left: one with too early a
time comes right behind the one before it. A record is given out when it was already there at the look at the ends
before this one: what was written before it, in whichever log, is then known.
"""

import math
from collections import deque
from dataclasses import dataclass, field

from operations.copy.logs import LOGS, Log, LogSource, Positions
from schemas.messages.records import Record

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
        self, known: Positions, ends: Positions, most: int, before_ms: float = math.inf
    ) -> list[tuple[Log, Record]]:
        """Return the next records, at most `most`, up to the first that is not from before a time.

        `known` are the ends at the look before, `ends` the present ones.
        """
        taken: list[tuple[Log, Record]] = []
        while len(taken) < most:
            for log in LOGS:
                await self._fill(log, ends.get((log, self._partition), 0))
            following = self._next()
            if following is None or self._ahead[following][0].offset >= known.get((following, self._partition), 0):
                break
            if self._ahead[following][0].timestamp_ms >= before_ms:
                break
            taken.append((following, self._give(following)))
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

    def _next(self) -> Log | None:
        """Return the log with the earliest next record; the first of `LOGS` where times are equal."""
        waiting = [log for log in LOGS if self._ahead[log]]
        return min(waiting, key=lambda log: self._ahead[log][0].timestamp_ms, default=None)

    def _give(self, log: Log) -> Record:
        record = self._ahead[log].popleft()
        self.position.offsets[log] = record.offset + 1
        return record
