"""The logs of a deployment in Kafka, as they are read."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from modestream_client.kafka.log_reader import LogReader, TopicAndPartition

from operations.copy.archived_log import ArchivedLog
from operations.copy.logs import LOGS, Log, LogPartition, Outcome, Positions
from schemas.messages.records import Record
from streams.adapters.kafka.admin import committed_offsets, count_partitions
from streams.adapters.kafka.logs import open_reader, read_to_end
from streams.adapters.kafka.pipeline_log import PIPELINES_PARTITION
from streams.settings import Settings
from streams.tables.memory_table import FORGOTTEN_TOMBSTONE
from streams.topics import changelog, group_id, topics_with_prefix

DISTILLED = b'"origin":"distilled"'
"""What the row of a distilled memory has, as it is serialised; a text has its quotation marks escaped."""


class KafkaLogs:
    """Reads the logs of a deployment; implements `LogSource`."""

    def __init__(self, reader: LogReader, settings: Settings) -> None:
        self._reader = reader
        self._settings = settings
        self._topics = log_topics(settings.topic_prefix)
        self._turns = ArchivedLog(reader, topics_with_prefix(settings.topic_prefix))
        self.partitions = settings.partitions

    async def ends(self) -> Positions:
        """Return the offsets after the last records."""
        names = {topic: log for log, topic in self._topics.items()}
        ends = (await self._reader.ends()).items()
        return {(names[topic], partition): end for (topic, partition), end in ends if topic in names}

    async def read(self, place: LogPartition, offset: int, most: int) -> tuple[list[Record], int]:
        """Return records from an offset on, and the offset to read next."""
        log, partition = place
        if log == "turns":
            return await self._turns.read(partition, offset, most)
        return await self._reader.read((self._topics[log], partition), offset, most)

    async def has_archived(self) -> bool:
        """True if some turns are no longer in the log of turns."""
        return await self._turns.has_archived(range(self.partitions))

    async def outcome(self) -> Outcome:
        """Return what the logs have led to, as the changelog of the table `memories` has it."""
        return await read_outcome(self._settings)

    async def revisions(self) -> list[Record]:
        """Return the revisions of the pipelines."""
        topic = topics_with_prefix(self._settings.topic_prefix).pipelines
        return await read_to_end(self._settings, topic, [PIPELINES_PARTITION])


async def read_outcome(settings: Settings) -> Outcome:
    """Return what the logs of a deployment have led to. Raises Unavailable."""
    # Read first: what is committed is in the changelog.
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
    """The last values of the table, as far as they are tombstones or distilled memories."""

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
    """Return the topics of the logs."""
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
