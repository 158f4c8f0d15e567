"""Baseline of a request over Kafka: a process that echoes records, and a client that times the round trip.

`python -m bench.harness.echo BOOTSTRAP` is the echoing process; it prints a line when it is listening.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from bench.harness.system import ROOT

REQUESTS, REPLIES = "bench-echo-requests", "bench-echo-replies"
WARM_UP = 50
"""First round trips, which are not counted."""


async def measure_echo_s(bootstrap: str, request: bytes, count: int) -> float:
    """Return the median round trip of this request in seconds, one request at a time."""
    await _make_topics(bootstrap)
    async with _process(bootstrap), _pair(bootstrap, REPLIES) as (producer, consumer):
        times = []
        for _ in range(count + WARM_UP):
            began = time.perf_counter()
            await producer.send(REQUESTS, request, partition=0)
            await consumer.getone()
            times.append(time.perf_counter() - began)
        return median(times[WARM_UP:])


async def _echo(bootstrap: str) -> None:
    async with _pair(bootstrap, REQUESTS) as (producer, consumer):
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        async for record in consumer:
            await producer.send(REPLIES, record.value, partition=0)


@asynccontextmanager
async def _process(bootstrap: str) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.harness.echo", bootstrap, stdout=asyncio.subprocess.PIPE, cwd=ROOT
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
    """Yield a producer, and a consumer positioned at the end of this topic."""
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
        existing = await admin.list_topics()
        await admin.create_topics([NewTopic(name, 1, 1) for name in (REQUESTS, REPLIES) if name not in existing])
    finally:
        await admin.close()


if __name__ == "__main__":
    asyncio.run(_echo(sys.argv[1]))
