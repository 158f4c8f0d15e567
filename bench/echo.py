"""The least that a request over Kafka costs: a process that sends every record back, and a client that waits for it.

`python -m bench.echo BOOTSTRAP` is the process; it prints a line when it listens.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from bench.system import ROOT

REQUESTS, REPLIES = "bench-echo-requests", "bench-echo-replies"


async def seconds_an_echo(bootstrap: str, request: bytes, count: int) -> float:
    """The median round trip of a request of these bytes, one after another, after a few that do not count."""
    await _make_topics(bootstrap)
    async with _process(bootstrap), _pair(bootstrap, REPLIES) as (producer, consumer):
        times = []
        for _ in range(count + 50):
            began = time.perf_counter()
            await producer.send(REQUESTS, request, partition=0)
            await consumer.getone()
            times.append(time.perf_counter() - began)
        return median(times[50:])


async def _echo(bootstrap: str) -> None:
    async with _pair(bootstrap, REQUESTS) as (producer, consumer):
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        async for record in consumer:
            await producer.send(REPLIES, record.value, partition=0)


@asynccontextmanager
async def _process(bootstrap: str) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.echo", bootstrap, stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    try:
        assert process.stdout is not None
        await process.stdout.readline()
        yield
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def _pair(bootstrap: str, topic: str) -> AsyncIterator[tuple[AIOKafkaProducer, AIOKafkaConsumer]]:
    """A producer, and a consumer that reads this topic from its end on."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all")
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="latest")
    await producer.start()
    await consumer.start()
    try:
        await consumer.seek_to_end()
        for partition in consumer.assignment():
            await consumer.position(partition)
        yield producer, consumer
    finally:
        await consumer.stop()
        await producer.stop()


async def _make_topics(bootstrap: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        there = await admin.list_topics()
        await admin.create_topics([NewTopic(name, 1, 1) for name in (REQUESTS, REPLIES) if name not in there])
    finally:
        await admin.close()


if __name__ == "__main__":
    asyncio.run(_echo(sys.argv[1]))
