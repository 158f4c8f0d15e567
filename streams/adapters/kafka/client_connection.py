"""The client's sockets: one producer, and one reader of one partition of the shared reply topic.

Records enter by `send` and are acknowledged by all in-sync replicas. Every record that arrives on the own partition
after `open` leaves through `on_record`; other clients' replies are among them. Both sides reconnect after an outage.
Kafka's errors leave as `Unavailable`.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import ConsumerStoppedError, KafkaError
from aiokafka.structs import RecordMetadata

from schemas.failures import Unavailable

MAX_RECORD_BYTES = 8 << 20
"""A turn of 32,768 characters with a few transcripts of the same length, or a hundred long hits, in UTF-8."""

READ_BACKOFF_S = 0.2
"""Pause after an error of the reply reader, so that an outage does not spin."""

RecordHeaders = Iterable[tuple[str, bytes]]
OnRecord = Callable[[RecordHeaders, bytes | None], None]
OnWritten = Callable[[int], None]
RecordPosition = tuple[int, int]
"""Partition and offset of a record."""


class Connection:
    """The producer and the reply reader of one client. Belongs to one event loop."""

    def __init__(self, producer: AIOKafkaProducer, reply_to: TopicPartition) -> None:
        self._producer = producer
        self.reply_topic: str = reply_to.topic
        self.reply_partition: int = reply_to.partition

    async def send(
        self, topic: str, key: bytes, value: bytes, headers: RecordHeaders, on_written: OnWritten
    ) -> RecordPosition:
        """Write one record and wait until Kafka has acknowledged it; give its partition and offset.

        The partition is murmur2 of the key, as in Java. A caller that gives up does not take the record back:
        `on_written` gets the offset also when nobody waits any more, and before this returns.
        """
        with _translated("Kafka did not take the record"):
            future = await self._producer.send(topic, value, key=key, headers=list(headers))
            future.add_done_callback(lambda done: _report(done, on_written))
            written = await asyncio.shield(future)
        return written.partition, written.offset


@asynccontextmanager
async def open_connection(
    bootstrap: str, reply_topic: str, on_record: OnRecord, patience: float
) -> AsyncIterator[Connection]:
    """Connect, with replies read from before the block starts on. No step takes longer than `patience` seconds.

    Raises `Unavailable` where there is no broker or no reply topic.
    """
    async with AsyncExitStack() as stack:
        with _translated(f"no connection to Kafka at {bootstrap}"):
            async with asyncio.timeout(patience):
                producer = await _producer(stack, bootstrap, patience)
                consumer = await _consumer(stack, bootstrap, patience)
                own = await _own_partition(producer, reply_topic)
                await _read_from_now_on(consumer, own)
        reading = asyncio.create_task(_read(consumer, on_record))
        stack.push_async_callback(_cancelled, reading)
        yield Connection(producer, own)


async def _producer(stack: AsyncExitStack, bootstrap: str, patience: float) -> AIOKafkaProducer:
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, max_request_size=MAX_RECORD_BYTES
    )
    stack.push_async_callback(_stopped, producer.stop, producer.client.close, patience)
    await producer.start()
    return producer


async def _consumer(stack: AsyncExitStack, bootstrap: str, patience: float) -> AIOKafkaConsumer:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="latest",
        max_partition_fetch_bytes=MAX_RECORD_BYTES,
    )
    stack.push_async_callback(_stopped, consumer.stop, consumer._client.close, patience)  # noqa: SLF001 (no other way)
    await consumer.start()
    return consumer


async def _own_partition(producer: AIOKafkaProducer, topic: str) -> TopicPartition:
    # At random: the partitions share the clients, and no client needs to know of the others.
    return TopicPartition(topic, secrets.choice(sorted(await producer.partitions_for(topic))))


async def _read_from_now_on(consumer: AIOKafkaConsumer, partition: TopicPartition) -> None:
    consumer.assign([partition])
    await consumer.seek_to_end(partition)
    # The end is looked up here and now: later, it would lie behind the reply to the first request.
    await consumer.position(partition)


async def _read(consumer: AIOKafkaConsumer, on_record: OnRecord) -> None:
    while True:
        try:
            record = await consumer.getone()
        except ConsumerStoppedError:
            return
        except KafkaError:
            await asyncio.sleep(READ_BACKOFF_S)
        else:
            on_record(record.headers, record.value)


def _report(done: asyncio.Future[RecordMetadata], on_written: OnWritten) -> None:
    if not done.cancelled() and done.exception() is None:
        on_written(done.result().offset)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _stopped(stop: Callable[[], Any], cut: Callable[[], Any], patience: float) -> None:
    # In a task of its own, because while the broker is away aiokafka's `stop` may flush for ever, and may raise a
    # CancelledError that nobody asked for, with its connections still open.
    stopping = asyncio.create_task(stop())
    await asyncio.wait({stopping}, timeout=patience)
    if not stopping.done() or stopping.cancelled() or stopping.exception() is not None:
        stopping.cancel()
        await cut()


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError as problem:
        raise Unavailable(f"{what}: no answer in time") from problem
    except KafkaError as problem:
        raise Unavailable(f"{what}: {problem}") from problem
