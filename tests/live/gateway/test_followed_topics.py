"""Topics that a gateway follows, and dead letters that it reads by their places, over a real broker."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

import pytest
from aiokafka import AIOKafkaProducer

from gateway.backend.dead_letters import TOPIC, KafkaDeadLetters
from gateway.backend.followers import Cluster, Follower
from gateway.backend.recorded_turns import KafkaRecordedTurns
from gateway.service.dead_letters import DeadLetterList, LetterPosition
from schemas.messages.records import Record
from streams.adapters.kafka.clients import ensure_topics
from streams.settings import Settings
from tests.worlds.live.broker import RunningBroker

LETTERS = 20


@pytest.fixture
async def cluster(live_broker: RunningBroker, prefix: str) -> Cluster:
    """A deployment whose dead letters lie in turns in two partitions."""
    settings = Settings(_env_file=None, broker=f"kafka://{live_broker.bootstrap}", topic_prefix=prefix, partitions=2)
    await ensure_topics(settings, {prefix + TOPIC: {}})
    async with AIOKafkaProducer(bootstrap_servers=live_broker.bootstrap, acks="all") as producer:
        for number in range(LETTERS):
            await producer.send_and_wait(prefix + TOPIC, str(number).encode(), key=b"u", partition=number % 2)
    return Cluster(live_broker.bootstrap, prefix)


@pytest.fixture
async def letters(cluster: Cluster) -> AsyncIterator[KafkaDeadLetters]:
    made = KafkaDeadLetters(cluster, DeadLetterList())
    async with made.running():
        yield made


async def test_letters_are_read_by_their_places(letters: KafkaDeadLetters) -> None:
    wanted = [LetterPosition(1, 7), LetterPosition(0, 2), LetterPosition(0, 3), LetterPosition(0, 9)]
    read = [(record.topic, record.value) async for record in letters.read(wanted)]
    assert read == [(TOPIC, b"4"), (TOPIC, b"6"), (TOPIC, b"18"), (TOPIC, b"15")]


async def test_last_records_of_each_partition_are_followed(cluster: Cluster) -> None:
    seen: list[tuple[int, int]] = []
    starts: list[dict[tuple[str, int], int]] = []

    def take(records: Sequence[Record]) -> None:
        seen.extend((record.partition, record.offset) for record in records)

    follower = Follower(cluster, [TOPIC], 3, take, starts.append)
    following = asyncio.create_task(follower.run())
    async with asyncio.timeout(30):
        await follower.is_caught_up.wait()
    following.cancel()
    with suppress(asyncio.CancelledError):
        await following
    assert starts == [{(TOPIC, 0): 7, (TOPIC, 1): 7}]
    assert sorted(seen) == [(partition, offset) for partition in (0, 1) for offset in (7, 8, 9)]


async def test_turns_are_read_from_the_times_of_their_records(cluster: Cluster) -> None:
    topic = cluster.topic_prefix + "turns"
    settings = Settings(
        _env_file=None, broker=f"kafka://{cluster.bootstrap}", topic_prefix=cluster.topic_prefix, partitions=2
    )
    await ensure_topics(settings, {topic: {}})
    async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all") as producer:
        for number in range(LETTERS):
            value, at = str(number).encode(), 1_772_357_400_000 + 1000 * number
            await producer.send_and_wait(topic, value, key=b"u", partition=1, timestamp_ms=at)
    read = await KafkaRecordedTurns(cluster).since(1, [1_772_357_410_000, 1_772_357_400_001, 1_772_357_500_000])
    assert [[record.value for record in records[:2]] for records in read] == [[b"10", b"11"], [b"1", b"2"], []]
