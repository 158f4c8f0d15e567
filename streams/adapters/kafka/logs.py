"""The deployment's logs in Kafka, read outside of any consumer group by the client's `LogReader`.

Boundaries, pipelines, runs, turns and their archive: each port has its adapter here.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any
from uuid import UUID

import structlog
from aiokafka import TopicPartition
from aiokafka.admin import RecordsToDelete
from aiokafka.errors import KafkaError
from modestream_client.kafka.log_reader import LogReader, TopicAndPartition, open_log_reader
from modestream_client.runs import Run

from agents.ports.commands import RunPage
from schemas.failures import Unavailable
from schemas.messages.published import LoggedContext
from schemas.messages.records import Outgoing, Record
from schemas.state.pipelines import Revision
from streams.adapters.kafka.clients import committed_offsets, connected_admin
from streams.fair_queue import FairTurns
from streams.flow.background.boundaries import note_told
from streams.flow.publisher import Publisher
from streams.flow.runs.record import RunsFound
from streams.settings import Settings
from streams.topics import MAX_OUTPUT_BYTES, group_id, topics_with_prefix
from streams.wire.archived_turns import is_text_archived, position_in

log = structlog.get_logger()

READ_TIMEOUT_S = 60.0
"""Time limit of one attempt: a million tombstones are read in a fraction of it."""


@asynccontextmanager
async def open_reader(
    settings: Settings, partitions: Collection[TopicAndPartition] = (), **options: Any
) -> AsyncIterator[LogReader]:
    """Connect, reading with the settings' isolation level; `options` are further ones of the consumer.

    Raises Unavailable for errors of Kafka, also in the block.
    """
    options = {"isolation_level": settings.isolation_level, "max_partition_fetch_bytes": MAX_OUTPUT_BYTES} | options
    try:
        async with open_log_reader(settings.kafka_connection, partitions, **options) as reader:
            yield reader
    except KafkaError as problem:
        raise Unavailable(f"Kafka at {settings.broker} can't be read: {problem!r}") from problem


async def read_to_end(settings: Settings, topic: str, partitions: Iterable[int]) -> list[Record]:
    """Return the records of these partitions, each in order, with all acknowledged before the call.

    Raises Unavailable while Kafka can't be read.
    """
    records: list[Record] = []
    await read_each(settings, topic, partitions, records.append)
    return records


async def read_each(
    settings: Settings, topic: str, partitions: Iterable[int], take: Callable[[Record], object]
) -> None:
    """Call `take` with the records of these partitions, as `read_to_end` returns them, and keep none of them."""
    try:
        async with asyncio.timeout(READ_TIMEOUT_S), open_reader(settings) as reader:
            for number in partitions:
                await reader.read_through((topic, number), take)
    except OSError as problem:
        raise Unavailable(f"{topic} can't be read: {problem!r}") from problem


class KafkaBoundaryLog:
    """Reads the topic `boundaries`. Implements `streams.flow.background.boundaries.BoundaryLog`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._topic = topics_with_prefix(settings.topic_prefix).boundaries

    async def told(self, partition: int) -> dict[str, int]:
        """Return the digests of the last values by boundary, without tombstones. Raises Unavailable."""
        told: dict[str, int] = {}
        await read_each(self._settings, self._topic, [partition], partial(note_told, told))
        return told


PIPELINES_PARTITION = 0
"""The partition of all revisions: their order decides."""

POLL_MS = 1000
RETRY_S = 1.0


Take = Callable[[bytes | None], Awaitable[None]]


class KafkaPipelineLog:
    """The topic `pipelines`: written to, and read from its beginning, between `begin` and `stop`.

    Records have different keys, so that compaction removes none: two editors may have written the same number, and the
    first one counts for every reader.
    """

    def __init__(self, settings: Settings, publisher: Publisher) -> None:
        self._settings = settings
        self._publisher = publisher
        self._topic = topics_with_prefix(settings.topic_prefix).pipelines
        self._reader: LogReader | None = None
        self._opened = AsyncExitStack()

    async def write(self, revision: Revision) -> None:
        """Write a revision, and wait until Kafka has it."""
        key, value = f"{revision.number}-{revision.request}", revision.model_dump_json(by_alias=True)
        out = Outgoing(self._topic, key.encode(), value.encode(), partition=PIPELINES_PARTITION)
        await (await self._publisher.send(out))

    async def begin(self, take: Take, created: Collection[str]) -> None:
        """Read all revisions. Raises Unavailable while Kafka can't be read.

        Reads nothing from a topic that was `created` just now: its partition may have no leader.
        """
        source = (self._topic, PIPELINES_PARTITION)
        # Longest wait of the broker for new records: each empty answer costs both some processor time.
        opening = open_reader(self._settings, [source], fetch_max_wait_ms=POLL_MS)
        try:
            async with AsyncExitStack() as opened, asyncio.timeout(READ_TIMEOUT_S):
                reader = await opened.enter_async_context(opening)
                if self._topic not in created:
                    async for records in reader.read_to_end(source):
                        for record in records:
                            await take(record.value)
                self._reader, self._opened = reader, opened.pop_all()
        except (KafkaError, OSError) as problem:
            raise Unavailable(f"{self._topic} can't be read: {problem!r}") from problem

    async def run(self, take: Take) -> None:
        assert self._reader is not None
        while True:
            try:
                for records in (await self._reader.poll(wait_ms=POLL_MS)).values():
                    for record in records:
                        await take(record.value)
            except (KafkaError, OSError) as problem:
                log.warning("the topic of pipelines can't be read", problem=repr(problem))
                await asyncio.sleep(RETRY_S)

    async def stop(self) -> None:
        await self._opened.aclose()


FIRST_WINDOW = 1000
"""Records of the first window from the end; each further one doubles the total."""

MAX_WINDOW_RECORDS = 20_000
"""Maximum records read for one answer, including other users': half a second's work, in small parts."""

ANSWER_S = 3.0
"""Maximum seconds of one answer; a list then shows the runs found so far."""

POLL_RECORDS = 100
"""Records between two pauses for the event loop."""

FETCH_BYTES = 1 << 20
"""Bytes of one response: a window's end is not known to the broker."""

ANSWERS_AT_ONCE = 4
"""Concurrent answers, two of one user."""


class _BoundedLog:
    """A topic with records of all users, of which an answer to one user reads so much and takes so long at most."""

    def __init__(self, settings: Settings, topic: str) -> None:
        self._settings = settings
        self._topic = topic
        self._turns = FairTurns(ANSWERS_AT_ONCE, 2 * ANSWER_S)

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[LogReader]:
        """Connect for one answer, within the user's turn. Raises TimeoutError, and Unavailable for Kafka's errors."""
        try:
            async with (
                asyncio.timeout(ANSWER_S),
                open_reader(self._settings, max_partition_fetch_bytes=FETCH_BYTES) as reader,
            ):
                yield reader
        except TimeoutError:
            raise
        except OSError as problem:
            raise Unavailable(f"{self._topic} can't be read: {problem!r}") from problem

    async def _windows(self, reader: LogReader, partition: int) -> AsyncIterator[AsyncIterator[list[Record]] | None]:
        """Yield the records by windows, from the last one to the first; None instead of those beyond the maximum."""
        source, end = (self._topic, partition), 0
        async for window in reader.windows_backwards(source, FIRST_WINDOW):
            end = max(end, window.stop)
            if end - window.stop >= MAX_WINDOW_RECORDS:
                yield None
                return
            yield reader.read_range(source, window.start, window.stop, POLL_RECORDS)


class KafkaRunLog(_BoundedLog):
    """Reads the topic `runs` backwards from its end, as far as a list of the newest needs.

    Implements `agents.ports.commands.RunLog`.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, topics_with_prefix(settings.topic_prefix).runs)

    async def newest(
        self, partition: int, boundary: str, admits: Callable[[Run], bool], limit: int, since_ms: int = 0
    ) -> RunPage:
        """Return the newest runs, within `MAX_WINDOW_RECORDS` records and `ANSWER_S` seconds. Raises Unavailable."""
        async with self._turns.turn(boundary):
            runs = RunsFound(boundary.encode(), admits, limit, since_ms)
            try:
                async with self._reading() as reader:
                    async for pages in self._windows(reader, partition):
                        if runs.is_enough:
                            break
                        if pages is None:
                            runs.is_complete = False
                            break
                        async for records in pages:
                            for record in records:
                                runs.take(record.key, record.value, record.timestamp_ms)
                        runs.finish_window()
            except TimeoutError:
                runs.is_complete = False
        return runs.page()


CLOCKS_MS = 120_000
"""Tolerated difference between the clocks of worker and broker; beyond it, the latest records are examined."""

FRESH_S, FRESH_WAIT_MS = 1.0, 100
"""How long a record may be on its way to Kafka after its answer, and how long one read waits for it."""


class KafkaContextLog(_BoundedLog):
    """Finds records of the topic `contexts` by the time in their ids. Implements `agents.ports.commands.ContextLog`."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, topics_with_prefix(settings.topic_prefix).contexts)

    async def find(self, partition: int, boundary: str, context_id: str) -> LoggedContext | None:
        """Return a context of a boundary; None for one that is not there. Raises Unavailable."""
        made_ms = _time_of(context_id)
        if made_ms is None:
            return None

        among = partial(_context_among, boundary.encode(), context_id)
        source = (self._topic, partition)
        try:
            async with self._turns.turn(boundary), self._reading() as reader:
                # From the time of the id on, and where it is not there among the latest: clocks may differ by more.
                end = (await reader.ends([source]))[source]
                first = (await reader.first_since([source], made_ms - CLOCKS_MS))[source]
                offset, is_passed = end if first is None else first, False
                while not is_passed and (offset < end or abs(time.time() - made_ms / 1000) < FRESH_S):
                    records, offset = await reader.read(source, offset, POLL_RECORDS, FRESH_WAIT_MS)
                    if (context := among(records)) is not None:
                        return context
                    is_passed = bool(records) and records[-1].timestamp_ms > made_ms + CLOCKS_MS
                async for pages in self._windows(reader, partition):
                    if pages is None:
                        break
                    async for records in pages:
                        if (context := among(records)) is not None:
                            return context
        except TimeoutError as problem:
            raise Unavailable(f"{self._topic} can't be read: {problem!r}") from problem
        return None


def _context_among(key: bytes, context_id: str, records: Iterable[Record]) -> LoggedContext | None:
    for record in records:
        if record.key == key and context_id.encode() in (record.value or b""):
            # What can't be read as a context is a rating of it.
            with suppress(ValueError):
                context = LoggedContext.model_validate_json(record.value or b"")
                if context.context_id == context_id:
                    return context
    return None


def _time_of(context_id: str) -> int | None:
    """Return the time of a UUIDv7 in milliseconds; None for any other text."""
    try:
        parsed = UUID(context_id)
    except ValueError:
        return None
    return parsed.int >> 80 if parsed.version == 7 and str(parsed) == context_id else None


class KafkaForgottenLogs:
    """Implements `streams.flow.background.receipts.ForgottenLogs`."""

    def __init__(self, settings: Settings, changelogs: Collection[str]) -> None:
        topics = topics_with_prefix(settings.topic_prefix)
        self._settings = settings
        self._archive = topics.archive
        self._cut = (topics.turns, topics.retrieve, *sorted(topics.internal_events()))
        self._replies = topics.replies
        self._compacted = (*sorted(changelogs), topics.archive)

    async def ends(self, partition: int) -> dict[str, int]:
        """Return the ends of the logs of a partition, and of all replies: callers choose where theirs are written."""
        async with self._connected() as reader:
            ends = await reader.ends([*self._cut_logs(partition), *((name, partition) for name in self._compacted)])
        return {_log_name(log): end for log, end in ends.items()}

    async def erased_until(self, partition: int) -> dict[str, int]:
        """Return the begins of logs that are cut, and of compacted ones the first record that a later one replaces."""
        async with self._connected() as reader:
            begins = await reader.begins(self._cut_logs(partition))
            until = {_log_name(log): begin for log, begin in begins.items()}
            for name in self._compacted:
                until[_log_name((name, partition))] = await _first_replaced(reader, (name, partition))
        return until

    async def archived_texts(self, partition: int, memory_ids: Collection[str]) -> set[str]:
        """Look for the last record of each from the end of the archive backwards."""
        wanted, texts = {memory_id.encode() for memory_id in memory_ids}, set[str]()
        archive = (self._archive, partition)
        async with self._connected() as reader:
            async for window in reader.windows_backwards(archive, TAIL_RECORDS):
                latest: dict[bytes, Record] = {}
                async for records in reader.read_range(archive, window.start, window.stop):
                    latest |= {record.key: record for record in records if record.key in wanted}
                texts |= {key.decode() for key, record in latest.items() if is_text_archived(record)}
                wanted -= latest.keys()
                if not wanted:
                    break
        return texts

    def _cut_logs(self, partition: int) -> list[TopicAndPartition]:
        replies = ((self._replies, number) for number in range(self._settings.partitions))
        return [*((name, partition) for name in self._cut), *replies]

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[LogReader]:
        try:
            async with open_reader(self._settings) as reader:
                yield reader
        except OSError as problem:
            raise Unavailable(f"logs of what was forgotten can't be read: {problem!r}") from problem


def _log_name(log: TopicAndPartition) -> str:
    return f"{log[0]}:{log[1]}"


async def _first_replaced(reader: LogReader, log: TopicAndPartition) -> int:
    """Return the offset of the first record that a later one of its key replaces; the end without any."""
    last: dict[bytes | None, int] = {}
    first = (await reader.ends([log]))[log]

    def take(record: Record) -> None:
        nonlocal first
        first = min(first, last.get(record.key, first))
        last[record.key] = record.offset

    await reader.read_through(log, take)
    return first


TAIL_RECORDS = 1000
"""Records at the end of the archive searched first for its position, then as many before, and so on."""


class KafkaTurnsHistory:
    """Implements `streams.flow.turns_log.TurnsHistory`. Opens its reader with the first call."""

    def __init__(self, settings: Settings) -> None:
        topics = topics_with_prefix(settings.topic_prefix)
        self._settings = settings
        self._turns, self._archive = topics.turns, topics.archive
        self._reader: LogReader | None = None
        self._opened = AsyncExitStack()

    async def handled(self, partition: int) -> int:
        """Return the offset that the group has committed."""
        committed = await committed_offsets(self._settings, group_id(self._settings))
        return max(committed.get((self._turns, partition), 0), 0)

    async def begin(self, partition: int) -> int:
        async with self._connected() as reader:
            return await reader.begin((self._turns, partition))

    async def first_since(self, partition: int, moment_ms: int) -> int | None:
        turns = (self._turns, partition)
        async with self._connected() as reader:
            return (await reader.first_since([turns], moment_ms))[turns]

    async def read(self, partition: int, offset: int) -> tuple[Sequence[Record], int]:
        """Return a page of turns, and the offset after it."""
        async with self._connected() as reader:
            return await reader.read((self._turns, partition), offset)

    async def read_archive(self, partition: int, offset: int) -> tuple[Sequence[Record], int]:
        """Return a page of the archive, and the offset after it."""
        async with self._connected() as reader:
            return await reader.read((self._archive, partition), offset)

    async def archive_end(self, partition: int) -> int:
        archive = (self._archive, partition)
        async with self._connected() as reader:
            return (await reader.ends([archive]))[archive]

    async def archived(self, partition: int) -> int:
        """Find the last position from the end of the archive backwards."""
        archive = (self._archive, partition)
        async with self._connected() as reader:
            async for window in reader.windows_backwards(archive, TAIL_RECORDS):
                positions = [
                    position
                    async for records in reader.read_range(archive, window.start, window.stop)
                    for record in records
                    if (position := position_in(record)) is not None
                ]
                if positions:
                    return positions[-1]
        return 0

    async def delete_before(self, partition: int, offset: int) -> None:
        """Move the beginning of the log; Kafka deletes the segments before it."""
        try:
            async with connected_admin(self._settings) as admin:
                await admin.delete_records({TopicPartition(self._turns, partition): RecordsToDelete(offset)})
        except (KafkaError, OSError) as problem:
            raise Unavailable(f"turns can't be deleted from {self._turns}: {problem!r}") from problem

    async def aclose(self) -> None:
        self._reader = None
        await self._opened.aclose()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[LogReader]:
        """Yield the reader; a new one after an error. Raises Unavailable."""
        try:
            if self._reader is None:
                self._reader = await self._opened.enter_async_context(open_reader(self._settings))
            yield self._reader
        except (KafkaError, OSError) as problem:
            await self.aclose()
            raise Unavailable(f"the log of turns can't be read: {problem!r}") from problem
