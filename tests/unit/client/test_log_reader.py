"""One reader of Kafka's logs: to the present end, a range, backwards, as they are written."""

from typing import Any

import pytest
from aiokafka import ConsumerRecord, TopicPartition
from modestream_client.kafka import log_reader
from modestream_client.kafka.log_reader import LogReader, TopicAndPartition

LOG, OTHER = ("log", 0), ("log", 1)


class Consumer:
    """A consumer over logs in memory, whose responses have a few records."""

    def __init__(self, *, response: int = 3) -> None:
        self.offsets: dict[TopicAndPartition, list[int]] = {LOG: [], OTHER: []}
        self.stops: dict[TopicAndPartition, int] = {}
        """Ends of logs whose last records are compacted away."""
        self.positions: dict[TopicPartition, int | None] = {}
        self.sought: list[int] = []
        self.committed = 0
        self._response = response

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.positions = dict.fromkeys(partitions)

    def assignment(self) -> set[TopicPartition]:
        return set(self.positions)

    def subscribe(self, topics: list[str]) -> None:
        self.positions = {TopicPartition(*each): 0 for each in self.offsets if each[0] in topics}

    async def topics(self) -> set[str]:
        return {topic for topic, _ in self.offsets}

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.positions[partition] = offset
        self.sought.append(offset)

    async def position(self, partition: TopicPartition) -> int | None:
        return self.positions[partition]

    def next_offset(self, partition: TopicPartition) -> int | None:
        return self.positions[partition]

    async def end_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: self.stops.get(each, max(self.offsets[each], default=-1) + 1) for each in partitions}

    async def beginning_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: min(self.offsets[each], default=0) for each in partitions}

    async def getmany(
        self, *wanted: TopicPartition, timeout_ms: int, max_records: int | None
    ) -> dict[TopicPartition, list[Any]]:
        assert timeout_ms > 0
        fetched = {}
        for partition in wanted or sorted(self.positions):
            start = self.positions[partition] or 0
            ahead = [offset for offset in self.offsets[partition] if offset >= start]
            offsets = ahead[: min(self._response, max_records or self._response)]
            if offsets:
                fetched[partition] = [_record(partition, offset) for offset in offsets]
            is_last = offsets == ahead
            end = self.stops.get(partition, 0) if is_last else 0
            self.positions[partition] = max([start, end, *(offset + 1 for offset in offsets)])
        return fetched

    async def commit(self) -> None:
        self.committed += 1


def _record(partition: TopicPartition, offset: int) -> ConsumerRecord[bytes, bytes]:
    return ConsumerRecord(*partition, offset, 5, 0, b"key", b"value", None, 0, 0, (("name", b"header"),))


@pytest.fixture
def consumer(monkeypatch: pytest.MonkeyPatch) -> Consumer:
    monkeypatch.setattr(log_reader, "next_offset", Consumer.next_offset)
    return Consumer()


async def offsets_to_end(consumer: Consumer, partition: TopicAndPartition = LOG) -> list[int]:
    return [record.offset async for records in LogReader(consumer).read_to_end(partition) for record in records]


async def test_record_has_what_kafka_has(consumer: Consumer) -> None:
    consumer.offsets[LOG] = [7]
    [record], following = await LogReader(consumer).read(LOG, 7)
    assert record.topic == "log"
    assert record.partition == 0
    assert record.offset == 7
    assert record.timestamp_ms == 5
    assert record.key == b"key"
    assert record.value == b"value"
    assert record.header("name") == b"header"
    assert following == 8


async def test_all_is_read_to_the_present_end(consumer: Consumer) -> None:
    consumer.offsets[LOG] = [*range(10)]
    assert await offsets_to_end(consumer) == [*range(10)]


async def test_end_is_reached_where_compaction_has_removed_the_last_records(consumer: Consumer) -> None:
    consumer.offsets[LOG], consumer.stops[LOG] = [0, 2, 5], 9
    assert await offsets_to_end(consumer) == [0, 2, 5]


async def test_empty_partition_has_no_records(consumer: Consumer) -> None:
    assert await offsets_to_end(consumer) == []


async def test_range_ends_before_its_end(consumer: Consumer) -> None:
    consumer.offsets[LOG] = [*range(10)]
    pages = [page async for page in LogReader(consumer).read_range(LOG, 2, 6)]
    assert [record.offset for page in pages for record in page] == [2, 3, 4, 5]


async def test_page_has_the_given_number_of_records_at_most(consumer: Consumer) -> None:
    consumer.offsets[LOG] = [*range(3)]
    assert [len(page) async for page in LogReader(consumer).read_range(LOG, 0, 3, 1)] == [1, 1, 1]


async def test_partition_that_is_read_on_is_not_sought_again(consumer: Consumer) -> None:
    consumer.offsets[LOG] = [*range(9)]
    await offsets_to_end(consumer)
    assert consumer.sought == [0]


async def test_partitions_of_a_reader_stay_assigned_and_others_come_one_at_a_time(consumer: Consumer) -> None:
    reader = LogReader(consumer, [LOG])
    await reader.read(OTHER, 0)
    assert consumer.assignment() == {LOG, OTHER}
    reader = LogReader(consumer)
    consumer.assign([])
    await reader.read(LOG, 0)
    await reader.read(OTHER, 0)
    assert consumer.assignment() == {OTHER}


async def test_windows_double_towards_the_beginning(consumer: Consumer) -> None:
    consumer.offsets[LOG] = [*range(100, 200)]
    windows = [window async for window in LogReader(consumer).windows_backwards(LOG, 10)]
    assert windows == [range(190, 200), range(180, 190), range(160, 180), range(120, 160), range(100, 120)]


async def test_empty_log_has_no_windows(consumer: Consumer) -> None:
    assert [window async for window in LogReader(consumer).windows_backwards(LOG, 10)] == []


async def test_subscribed_topics_are_followed_from_where_they_were_sought(consumer: Consumer) -> None:
    consumer.offsets = {LOG: [0, 1, 2], OTHER: [0]}
    reader = LogReader(consumer)
    assert await reader.subscribe(["log"]) == [LOG, OTHER]
    reader.seek({LOG: 2})
    polled = await reader.poll()
    assert {partition: [record.offset for record in records] for partition, records in polled.items()} == {
        LOG: [2],
        OTHER: [0],
    }
    assert reader.position(LOG) == 3
