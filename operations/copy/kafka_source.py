"""The logs of a deployment in Kafka; the log of turns reads as if nothing had been archived.

Enters: the topics `turns` and `archive`. Leaves: turns in the order of their offsets; archived ones with their original
place, time, key and headers. Guaranteed: a turn that the worker archives and deletes during the read is read from the
archive; for a turn with several archived records, the last one.
"""

from array import array
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import takewhile
from typing import NamedTuple, Protocol

from modestream_client.kafka.log_reader import LogReader, TopicAndPartition

from operations.copy.entry_builder import LOGS, Log, LogPartition, Outcome, Positions
from schemas.messages.records import Record
from streams.adapters.kafka.clients import committed_offsets, count_partitions
from streams.adapters.kafka.logs import PIPELINES_PARTITION, open_reader, read_to_end
from streams.settings import Settings
from streams.tables.memory_tables import FORGOTTEN_TOMBSTONE
from streams.topics import Topics, changelog, group_id, topics_with_prefix
from streams.wire.archived_turns import original_turn


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
    """Offsets of a turn: in the log originally, and in the archive."""

    turn: int
    place: int


class ArchivedPartition:
    """Archive positions of the turns of one partition: 16 bytes each."""

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
        """Call `take` with all present turns, one by one, and return the end of the log."""
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
        """True if turns at this offset were deleted since the start of the log was last read."""
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
        """Read turns that are in order in the archive; return them, and how many of `wanted` are passed.

        A turn missing from its place was forgotten or replaced meanwhile.
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


DISTILLED = b'"origin":"distilled"'
"""Marker of a distilled memory's serialised row; in a text the quotation marks would be escaped."""


class KafkaLogs:
    """Reads the logs of a deployment; implements `LogSource`."""

    def __init__(self, reader: LogReader, settings: Settings) -> None:
        self._reader = reader
        self._settings = settings
        self._topics = log_topics(settings.topic_prefix)
        self._turns = ArchivedLog(reader, topics_with_prefix(settings.topic_prefix))
        self.partitions = settings.partitions

    async def ends(self) -> Positions:
        names = {topic: log for log, topic in self._topics.items()}
        ends = (await self._reader.ends()).items()
        return {(names[topic], partition): end for (topic, partition), end in ends if topic in names}

    async def read(self, place: LogPartition, offset: int, most: int) -> tuple[list[Record], int]:
        log, partition = place
        if log == "turns":
            return await self._turns.read(partition, offset, most)
        return await self._reader.read((self._topics[log], partition), offset, most)

    async def has_archived(self) -> bool:
        """True if some turns are no longer in the log of turns."""
        return await self._turns.has_archived(range(self.partitions))

    async def outcome(self) -> Outcome:
        """Return the outcome of the logs, from the changelog of the table `memories`."""
        return await read_outcome(self._settings)

    async def revisions(self) -> list[Record]:
        topic = topics_with_prefix(self._settings.topic_prefix).pipelines
        return await read_to_end(self._settings, topic, [PIPELINES_PARTITION])


async def read_outcome(settings: Settings) -> Outcome:
    """Return the outcome of a deployment's logs. Raises Unavailable."""
    # Read first: records committed before are in the changelog.
    committed = await committed_offsets(settings, group_id(settings))
    triggers = topics_with_prefix(settings.topic_prefix).consolidate
    consolidated = {number: offset for (topic, number), offset in committed.items() if topic == triggers}
    rows = _Rows()
    topic = changelog(settings, "memories")
    async with open_reader(settings) as reader:
        for number in range(await count_partitions(settings, topic)):
            await reader.read_through((topic, number), rows.take)
    return Outcome(frozenset(rows.forgotten), frozenset(rows.distilled), consolidated)


class _Rows:
    """Last values of the table that are tombstones or distilled memories."""

    def __init__(self) -> None:
        self.forgotten: set[str] = set()
        self.distilled: set[str] = set()

    def take(self, record: Record) -> None:
        memory_id, value = (record.key or b"").decode(), record.value or b""
        _keep(self.forgotten, memory_id, is_there=value.startswith(FORGOTTEN_TOMBSTONE))
        _keep(self.distilled, memory_id, is_there=DISTILLED in value and value.startswith(b"{"))


def _keep(ids: set[str], memory_id: str, *, is_there: bool) -> None:
    if is_there:
        ids.add(memory_id)
    else:
        ids.discard(memory_id)


def log_topics(prefix: str) -> Mapping[Log, str]:
    topics = topics_with_prefix(prefix)
    return {log: getattr(topics, log) for log in LOGS}


def log_places(settings: Settings) -> list[TopicAndPartition]:
    """Return the partitions of the logs, and of the archive of turns."""
    read = (*log_topics(settings.topic_prefix).values(), topics_with_prefix(settings.topic_prefix).archive)
    return [(topic, number) for topic in read for number in range(settings.partitions)]


@asynccontextmanager
async def open_logs(settings: Settings) -> AsyncIterator[KafkaLogs]:
    """Open the logs of a deployment for reading. Raises Unavailable."""
    async with open_reader(settings, log_places(settings)) as reader:
        yield KafkaLogs(reader, settings)
