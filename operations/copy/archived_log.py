"""Reads the log of turns as if nothing had been archived: the archive first, then what the log still has.

Enters: the topics `turns` and `archive`. Leaves: turns in the order of their offsets, those of the archive with the
place, time, key and headers that they had. Guaranteed: a turn that the worker archives and deletes while it is read is
read from the archive; of a turn with several records the archive has the last of those that were archived.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple, Protocol

from schemas.messages.records import Record
from streams.topics import Topics
from streams.wire.archived_turns import original_turn

TopicAndPartition = tuple[str, int]
"""A topic and a partition."""


class TopicsReader(Protocol):
    """Reads partitions of topics, as `modestream_client.kafka.log_reader.LogReader`."""

    async def begin(self, place: TopicAndPartition, /) -> int:
        """Return the offset of the first record."""

    async def ends(self) -> Mapping[TopicAndPartition, int]:
        """Return the offsets after the last records, of all open partitions."""

    async def read(self, place: TopicAndPartition, offset: int, most: int, /) -> tuple[list[Record], int]:
        """Return records from an offset on, and the offset to read next."""

    async def read_through(self, place: TopicAndPartition, take: Callable[[Record], None], /) -> None:
        """Call `take` with all records of a partition."""


class Archived(NamedTuple):
    """The offsets of a turn in the log, where it was, and in the archive."""

    turn: int
    place: int


class ArchivedPartition:
    """Where the archive has the turns of one partition: 16 bytes each."""

    def __init__(self, turns: Iterable[Archived]) -> None:
        ordered = sorted(turns)
        self._turns = array("q", [archived.turn for archived in ordered])
        self._places = array("q", [archived.place for archived in ordered])

    def following(self, offset: int, end: int, most: int) -> list[Archived]:
        """Return the turns from `offset` to before `end`, in their order, each with its place in the archive."""
        first = bisect_left(self._turns, offset)
        last = min(bisect_left(self._turns, end), first + most)
        return list(map(Archived, self._turns[first:last], self._places[first:last]))


class ArchivedLog:
    """The log of turns of a deployment."""

    def __init__(self, reader: TopicsReader, topics: Topics) -> None:
        """`reader` has the partitions of both topics open."""
        self._reader = reader
        self._topics = topics
        self._archives: dict[int, ArchivedPartition] = {}
        self._begins: dict[int, int] = {}

    async def read(self, partition: int, offset: int, most: int) -> tuple[list[Record], int]:
        """Return at most `most` turns from an offset on, and the offset to read next. Raises Unavailable."""
        if offset < await self._begin(partition):
            return await self._read_archive(partition, offset, most)
        records, following = await self._reader.read((self._topics.turns, partition), offset, most)
        has_gap = (records[0].offset if records else following) > offset
        if has_gap and await self._has_moved(partition, offset):
            return await self._read_archive(partition, offset, most)
        return records, following

    async def has_archived(self, partitions: Iterable[int]) -> bool:
        """True if the log of one of these partitions does not begin with its first turn."""
        return any([await self._reader.begin((self._topics.turns, partition)) > 0 for partition in partitions])

    async def read_through(self, partition: int, take: Callable[[Record], None], page: int = 1000) -> int:
        """Call `take` with all turns that are there, keep none, and return the end of the log."""
        end = (await self._reader.ends())[self._topics.turns, partition]
        offset = 0
        while offset < end:
            records, offset = await self.read(partition, offset, page)
            for record in records:
                take(record)
        return end

    async def _begin(self, partition: int) -> int:
        if partition not in self._begins:
            self._begins[partition] = await self._reader.begin((self._topics.turns, partition))
        return self._begins[partition]

    async def _has_moved(self, partition: int, offset: int) -> bool:
        """True if turns at this offset were deleted since the beginning of the log was asked for."""
        begin = await self._reader.begin((self._topics.turns, partition))
        has_moved = begin > max(offset, self._begins[partition])
        if has_moved:
            self._begins[partition] = begin
            self._archives.pop(partition, None)
        return has_moved

    async def _read_archive(self, partition: int, offset: int, most: int) -> tuple[list[Record], int]:
        begin = await self._begin(partition)
        if partition not in self._archives:
            self._archives[partition] = await self._index(partition)
        wanted = self._archives[partition].following(offset, begin, most)
        after = wanted[-1].turn + 1 if len(wanted) == most else begin
        records: list[Record] = []
        while wanted:
            several, passed = await self._read_run(partition, wanted)
            records += several
            wanted = wanted[passed:]
        return records, after

    async def _read_run(self, partition: int, wanted: Sequence[Archived]) -> tuple[list[Record], int]:
        """Read turns that lie in their order in the archive; return them, and how many of `wanted` are passed.

        One that is not in its place was forgotten or replaced since it was looked for.
        """
        archive, first = (self._topics.archive, partition), wanted[0].place
        records, following = await self._reader.read(archive, first, len(wanted))
        if not records and following <= first:
            following += (await self._reader.ends())[archive] <= first
        by_place = {record.offset: record for record in records}
        run = list(takewhile(lambda turn: first <= turn.place < following, wanted))
        originals = [original_turn(by_place[turn.place], self._topics.turns) for turn in run if turn.place in by_place]
        return [original for original in originals if original is not None], len(run)

    async def _index(self, partition: int) -> ArchivedPartition:
        """Find the last record of each memory; a tombstone has none."""
        archive = (self._topics.archive, partition)
        places: dict[bytes, Archived] = {}

        def take(record: Record) -> None:
            original = original_turn(record, self._topics.turns)
            if original is not None:
                places[record.key or b""] = Archived(original.offset, record.offset)
            else:
                places.pop(record.key or b"", None)

        await self._reader.read_through(archive, take)
        return ArchivedPartition(places.values())
