"""What senders can do: garbage, a flood, the whole log again, a record that ends its worker, more partitions."""

import asyncio
import json
import os
from collections.abc import AsyncIterator

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions

from bench.faults.cluster import Cluster
from bench.faults.load import PATIENCE_S, Load, patiently
from bench.faults.poisoned import MARKER
from bench.faults.row import Fault
from bench.faults.world import World, new_up
from bench.harness.flood_loads import FLOODER, FLOODS
from streams.settings import Settings

TURNS, DEAD_LETTERS = "memory.turns", "memory.dead-letters"
GARBAGE_SHARE = 0.01
GARBAGE_S = 10.0
FLOOD_SCALE = 0.05
"""750 turns at once."""

POLL_S = 0.5


def garbage(number: int) -> bytes | None:
    """Return a value that is no turn."""
    return (
        os.urandom(200),
        b'{"schema": "turn.v1", "scope": {"user_id": "u"}',
        json.dumps({"schema": "turn.v9"}).encode(),
        None,
        json.dumps({"schema": "turn.v1", "scope": {"user_id": "u"}, "role": "user", "content": ""}).encode(),
    )[number % 5]


async def send_garbage(world: World, load: Load) -> str:
    """Write 1 % garbage among the turns of some seconds; each must be a dead letter."""
    count, before = max(5, round(GARBAGE_SHARE * load.per_second * GARBAGE_S)), await _count(world, DEAD_LETTERS)
    async with AIOKafkaProducer(bootstrap_servers=world.bootstrap) as producer:
        for number in range(count):
            await producer.send_and_wait(TURNS, garbage(number), key=f"{load.name}-{number}".encode())
            await asyncio.sleep(GARBAGE_S / count)
    letters = await _count_from(world, DEAD_LETTERS, before + count) - before
    return f"{count} records of garbage, {letters} dead letters"


async def flood(world: World, load: Load) -> str:
    """Let one user write turns as fast as Kafka takes them, until all are embedded."""
    await FLOODS["turns"].start(world.bootstrap, FLOOD_SCALE)

    async def modes() -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = (await load.client.command("health", user_id=FLOODER))["modes"]
        return found

    async with asyncio.timeout(PATIENCE_S):
        while True:
            turns = (await patiently(modes))["general"]
            if turns["ready"] == turns["eligible"] and await _lag_is_over(load):
                return f"{turns['eligible']} memories of the flood"
            await asyncio.sleep(POLL_S)


async def _lag_is_over(load: Load) -> bool:
    health = await patiently(lambda: load.client.command("health", user_id=FLOODER))
    return int(health["lag"].get(TURNS, 0)) < load.per_second


async def replay(world: World, _load: Load) -> str:
    """Write all turns of the log again, from its start."""
    count = 0
    async with AIOKafkaProducer(bootstrap_servers=world.bootstrap, linger_ms=5) as producer:
        async for key, value, headers in _records(world, TURNS):
            await producer.send(TURNS, value, key=key, headers=list(headers))
            count += 1
    return f"{count} records were written again"


async def poison(world: World, load: Load) -> str:
    """Write a turn that ends its worker; the third end in a row makes it a dead letter."""
    assert isinstance(world, Cluster)
    user_id, before, worker = f"{load.name}-0", await _count(world, DEAD_LETTERS), world.workers["worker"]
    turn = {"schema": "turn.v1", "scope": {"user_id": user_id}, "conversation_id": "c", "role": "user"}
    ended = len(worker.ends)
    async with AIOKafkaProducer(bootstrap_servers=world.bootstrap) as producer:
        value = json.dumps({**turn, "content": f"This {MARKER}."}).encode()
        await producer.send_and_wait(TURNS, value, key=user_id.encode())
    letters = await _count_from(world, DEAD_LETTERS, before + 1) - before
    return f"{len(worker.ends) - ended} ends of the worker, {letters} dead letter"


async def raise_partitions(world: World, _load: Load) -> str:
    """Add partitions to the topic of turns, as an operator by mistake."""
    admin = AIOKafkaAdminClient(bootstrap_servers=world.bootstrap)
    await admin.start()
    try:
        await admin.create_partitions({TURNS: NewPartitions(total_count=6)})
    finally:
        await admin.close()
    await asyncio.sleep(15)
    return "from 4 to 6; looked at for 15 s"


async def _count(world: World, topic: str) -> int:
    """Return how many records a topic has."""
    return sum([1 async for _ in _records(world, topic)])


async def _count_from(world: World, topic: str, count: int) -> int:
    """Wait until a topic has at least so many records; return how many it has."""
    async with asyncio.timeout(PATIENCE_S):
        while (found := await _count(world, topic)) < count:  # noqa: ASYNC110 - it is polled
            await asyncio.sleep(POLL_S)
        return found


async def _records(world: World, topic: str) -> AsyncIterator[tuple[bytes, bytes, list[tuple[str, bytes]]]]:
    """Yield key, value and headers of what a topic has by now."""
    async with AIOKafkaConsumer(bootstrap_servers=world.bootstrap, auto_offset_reset="earliest") as consumer:
        places = [TopicPartition(topic, number) for number in range(Settings().partitions)]
        consumer.assign(places)
        for place, end in (await consumer.end_offsets(places)).items():
            await consumer.seek_to_beginning(place)
            while await consumer.position(place) < end:
                record = await consumer.getone(place)
                yield record.key, record.value, record.headers


INPUT_FAULTS = [
    Fault("1 % garbage", new_up, send_garbage),
    Fault("a flood by one user", new_up, flood),
    Fault("replay from the start", new_up, replay),
    Fault("partitions raised by an operator", new_up, raise_partitions),
]
