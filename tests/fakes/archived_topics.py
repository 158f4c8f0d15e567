"""The topics of turns and of their archive in memory, as a worker archives and an operator reads them."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random

from schemas.messages.records import Outgoing, Record
from streams.wire.archived_turns import position_in
from tests.fakes.copied_logs import Killed

TURNS, ARCHIVE = "memory.turns", "memory.archive"


class FakeArchivedTopics:
    """Implements `TurnsHistory` and `Publisher` towards the worker, and a `LogReader` towards the operator.

    Dies after `lives` calls that write. `committed` is the offset up to which the worker has handled turns.
    """

    def __init__(self, page: int = 3) -> None:
        self.topics: defaultdict[tuple[str, int], list[Record]] = defaultdict(list)
        self.committed: dict[int, int] = {}
        self.lives = -1
        self.on_delete: Callable[[int, int], None] = lambda _partition, _offset: None
        self.on_send: Callable[[Outgoing], None] = lambda _out: None
        self._page = page
        self._ends: defaultdict[tuple[str, int], int] = defaultdict(int)

    def append(self, record: Record) -> Record:
        place = (record.topic, record.partition)
        self.topics[place].append(record)
        self._ends[place] = record.offset + 1
        return record

    def compact(self, partition: int, random: Random) -> None:
        """Remove archived records that a later one with the same key replaces, each or not, as Kafka may."""
        place = (ARCHIVE, partition)
        last = {record.key: record.offset for record in self.topics[place]}
        self.topics[place] = [
            record for record in self.topics[place] if last[record.key] == record.offset or random.random() < 0.5
        ]

    async def handled(self, partition: int) -> int:
        return self.committed.get(partition, self._ends[TURNS, partition])

    async def begin(self, place: int | tuple[str, int]) -> int:
        known = (TURNS, place) if isinstance(place, int) else place
        records = self.topics[known]
        return records[0].offset if records else self._ends[known]

    async def first_since(self, partition: int, moment_ms: int) -> int | None:
        return next(
            (record.offset for record in self.topics[TURNS, partition] if record.timestamp_ms >= moment_ms), None
        )

    async def read_archive(self, partition: int, offset: int) -> tuple[list[Record], int]:
        return await self.read((ARCHIVE, partition), offset)

    async def archive_end(self, partition: int) -> int:
        return self._ends[ARCHIVE, partition]

    async def archived(self, partition: int) -> int:
        positions = [position_in(record) for record in self.topics[ARCHIVE, partition]]
        return next((position for position in reversed(positions) if position is not None), 0)

    async def delete_before(self, partition: int, offset: int) -> None:
        self._die()
        self.on_delete(partition, offset)
        place = (TURNS, partition)
        self.topics[place] = [record for record in self.topics[place] if record.offset >= offset]
        self._die()

    async def send(self, out: Outgoing) -> Awaitable[None]:
        self._die()
        self.on_send(out)
        assert out.partition is not None
        place = (out.topic, out.partition)
        self.append(Record(*place, self._ends[place], 0, out.key, out.value, out.headers))
        self._die()
        written = asyncio.get_running_loop().create_future()
        written.set_result(None)
        return written

    def flush(self) -> None:
        """Do nothing: records are written at once."""

    async def reply(self, out: Outgoing) -> Awaitable[bool]:
        raise AssertionError(f"no reply was expected: {out}")

    async def ends(self) -> Mapping[tuple[str, int], int]:
        return dict(self._ends)

    async def read(self, place: int | tuple[str, int], offset: int, most: int = 1000) -> tuple[list[Record], int]:
        known = (TURNS, place) if isinstance(place, int) else place
        records = [record for record in self.topics[known] if record.offset >= offset][: min(most, self._page)]
        return records, records[-1].offset + 1 if records else max(offset, self._ends[known])

    async def read_through(self, place: tuple[str, int], take: Callable[[Record], None]) -> None:
        for record in list(self.topics[place]):
            take(record)

    def texts(self, topic: str, partition: int) -> Sequence[bytes]:
        return [record.value or b"" for record in self.topics[topic, partition]]

    def end(self, topic: str, partition: int) -> int:
        return self._ends[topic, partition]

    def _die(self) -> None:
        if self.lives == 0:
            raise Killed
        self.lives -= 1
