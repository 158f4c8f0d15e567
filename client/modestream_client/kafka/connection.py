"""The connection of a client: one producer, one consumer of one partition of the shared reply topic, Kafka's clock.

Sent records are acknowledged by all in-sync replicas. Every record that arrives on the own partition leaves through
`on_record`, other clients' replies included. Both sides reconnect; Kafka's errors are raised as `MemoryUnreachable`. A
pending request gets the first record with its correlation id.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import ConsumerStoppedError, InvalidTimestampError, KafkaError, MessageSizeTooLargeError
from aiokafka.partitioner import DefaultPartitioner
from aiokafka.structs import RecordMetadata

from modestream_client.answers import partial_of
from modestream_client.failures import MemoryClosed, MemoryServiceError, MemoryUnreachable
from modestream_client.kafka.log_reader import log_consumer
from modestream_client.kafka.own_clients import READ_BACKOFF_S, OwnProducer, RenewedProducer
from modestream_client.kafka.security import KafkaSecurity, connection_options
from modestream_client.transport import OnPartial

MAX_DIFFERENCE_MS = 10 * 60 * 1000
"""Tolerated difference of clocks: far more than a reply takes, far less than the hour that Kafka allows."""


def _steady_ms() -> float:
    """Return monotonic milliseconds, where possible counting while the machine is suspended."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC) if hasattr(time, "clock_gettime") else None
    return 1000 * (time.monotonic() if clock is None else time.clock_gettime(clock))


MAX_DISAGREEING = 3
"""Consecutive own replies dated long before Kafka's estimated time that prove that its clock was set back."""


class KafkaClock:
    """The time of day for records and deadlines: the own clock's, unless it is far from Kafka's.

    Kafka refuses records from more than an hour ahead, and makes a wrong deadline useless. Kafka's time comes from the
    replies read so far. It is never earlier than the time a reply was written: a reply from a backlog may be old.
    """

    def __init__(
        self, own_ms: Callable[[], float] = lambda: time.time() * 1000, steady_ms: Callable[[], float] = _steady_ms
    ) -> None:
        self._own_ms = own_ms
        self._steady_ms = steady_ms
        self._began_ms: float | None = None
        """Kafka's time at the zero of the steady clock: the latest that a record shows."""
        self._disagreeing: list[float] = []

    def note(self, written_ms: int, *, is_awaited: bool = True) -> None:
        """Take the broker's timestamp of a record just read; `is_awaited`: it replies to an own request."""
        began_ms = written_ms - self._steady_ms()
        if self._began_ms is None or began_ms >= self._began_ms - MAX_DIFFERENCE_MS:
            self._began_ms = began_ms if self._began_ms is None else max(self._began_ms, began_ms)
            self._disagreeing.clear()
        elif is_awaited:
            self._disagreeing.append(began_ms)
            if len(self._disagreeing) == MAX_DISAGREEING:
                self._began_ms = max(self._disagreeing)
                self._disagreeing.clear()

    def now_ms(self) -> int:
        """Return milliseconds since the epoch."""
        corrected = self.corrected_ms()
        return round(self._own_ms()) if corrected is None else corrected

    def corrected_ms(self) -> int | None:
        """Return Kafka's time if the own clock is far from it, else None."""
        if self._began_ms is None:
            return None
        kafka_ms = self._began_ms + self._steady_ms()
        return round(kafka_ms) if abs(self._own_ms() - kafka_ms) > MAX_DIFFERENCE_MS else None


CORRELATION_ID = "correlation_id"
"""The header that correlates a reply with its request."""

ReplyHeaders = Iterable[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class PendingReply:
    """The correlation id to send, and the future of the reply."""

    correlation_id: bytes
    reply: asyncio.Future[bytes]


class PendingReplies:
    """The pending requests by correlation id. Belongs to one event loop."""

    def __init__(self) -> None:
        self._pending: dict[bytes, asyncio.Future[bytes]] = {}
        self._streams: dict[bytes, OnPartial] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._pending)

    @contextmanager
    def expect(self, on_partial: OnPartial | None = None) -> Iterator[PendingReply]:
        """Accept one reply while the block runs; `on_partial` gets those before it. Raises `MemoryClosed` if closed."""
        if self._closed:
            raise MemoryClosed("the client was closed")
        # Text, so that an operator can read it in kcat; random, as other clients share the topic.
        pending = PendingReply(secrets.token_hex(16).encode(), asyncio.get_running_loop().create_future())
        self._pending[pending.correlation_id] = pending.reply
        if on_partial is not None:
            self._streams[pending.correlation_id] = on_partial
        try:
            yield pending
        finally:
            self._pending.pop(pending.correlation_id, None)
            self._streams.pop(pending.correlation_id, None)
            # Also when done: asyncio then does not log an exception that was never retrieved.
            pending.reply.cancel()

    def deliver(self, headers: ReplyHeaders, value: bytes | None) -> bool:
        """Resolve the pending request of a reply; return whether there is one."""
        correlation_id = dict(headers).get(CORRELATION_ID, b"")
        if (on_partial := self._streams.get(correlation_id)) is not None and (partial := partial_of(value)) is not None:
            on_partial(*partial)
            return True
        reply = self._pending.pop(correlation_id, None)
        if reply is None or reply.done():
            return False
        reply.set_result(value or b"")
        return True

    def close(self) -> None:
        """Fail every pending request with `MemoryClosed`."""
        self._closed = True
        for reply in self._pending.values():
            if not reply.done():
                reply.set_exception(MemoryClosed("the client was closed before the reply came"))


MAX_RECORD_BYTES = 8 << 20
"""Enough for a turn of 32,768 characters with a few transcripts of that length, or a hundred long hits, in UTF-8."""

REPLIES_TOPIC = "replies"
"""The shared reply topic, without its prefix."""

LOOKS = 8
LOOK_INTERVAL_S = 0.25
"""Number and interval of lookups for the service's topics."""

LOG_APPEND_TIME = 1
"""The type of a broker's own timestamps."""

RecordHeaders = Iterable[tuple[str, bytes]]
OnRecord = Callable[[RecordHeaders, bytes | None], bool]
"""Takes a record; returns whether a request of this client waited for it."""
OnWritten = Callable[[int], None]
RecordPosition = tuple[int, int]
"""Partition and offset of a record."""


class Connection:
    """The producer and the own reply partition of one client. Belongs to one event loop."""

    def __init__(self, producer: RenewedProducer, reply_to: TopicPartition, clock: KafkaClock) -> None:
        self._producer = producer
        self.clock = clock
        self.reply_topic: str = reply_to.topic
        self.reply_partition: int = reply_to.partition
        self._in_order: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()

    async def partition_of(self, topic: str, key: bytes) -> int:
        with _translate_errors(f"Kafka did not name the partitions of {topic}"):
            partitions = sorted(await self._producer.current.partitions_for(topic))
        partition: int = DefaultPartitioner()(key, partitions, partitions)
        return partition

    async def send(
        self,
        topic: str,
        key: bytes,
        value: bytes,
        headers: RecordHeaders,
        on_written: OnWritten,
        timestamp_ms: int | None = None,
        partition: int | None = None,
    ) -> RecordPosition:
        """Write one record and wait for Kafka's acknowledgement; return its partition and offset.

        Its timestamp is `timestamp_ms` since the epoch, by default now, by Kafka's clock if the own one is far off. Its
        partition is by default murmur2 of the key, as in Java. Records of one key are written in the order of calls.
        Cancellation does not take the record back: `on_written` gets the offset in any case, and before this returns.
        Raises `MemoryServiceError` with code `too_large` for a record that Kafka refuses.
        """
        stamp = self.clock.corrected_ms() if timestamp_ms is None else timestamp_ms
        record = {"value": value, "key": key, "partition": partition, "headers": list(headers), "timestamp_ms": stamp}

        async def hand_over(producer: AIOKafkaProducer) -> asyncio.Future[RecordMetadata]:
            # The lock keeps the order: if a batch is full, a later, smaller record would fit before this one.
            async with self._in_order.setdefault(key, asyncio.Lock()):
                future: asyncio.Future[RecordMetadata] = await producer.send(topic, **record)
            future.add_done_callback(report_offset)
            return future

        def report_offset(done: asyncio.Future[RecordMetadata]) -> None:
            if not done.cancelled() and done.exception() is None:
                on_written(done.result().offset)

        with _translate_errors("Kafka did not take the record"):
            written = await self._producer.send(hand_over)
        return written.partition, written.offset


@asynccontextmanager
async def open_connection(
    bootstrap: str, security: KafkaSecurity | None, reply_topic: str, on_record: OnRecord, timeout_s: float
) -> AsyncIterator[Connection]:
    """Connect; replies are read from before the block starts. No step takes longer than `timeout_s` seconds.

    Raises `MemoryUnreachable` without a broker or reply topic.
    """
    async with AsyncExitStack() as stack:
        how = {"bootstrap_servers": bootstrap, **connection_options(security)}
        with _translate_errors(f"no connection to Kafka at {bootstrap}"):
            async with asyncio.timeout(timeout_s):
                producer = await _producer(stack, how, timeout_s)
                consumer = log_consumer(how, auto_offset_reset="latest", max_partition_fetch_bytes=MAX_RECORD_BYTES)
                stop_fetching, cut = consumer.stop, consumer._client.close  # noqa: SLF001 (no other way)
                stack.push_async_callback(_stop, stop_fetching, cut, timeout_s)
                await consumer.start()
                if not await _is_there(consumer, reply_topic):
                    prefix = reply_topic.removesuffix(REPLIES_TOPIC)
                    raise MemoryUnreachable(f"no deployment with the prefix {prefix!r} on Kafka at {bootstrap}")
                # At random: spreads the clients over the partitions without coordination.
                own = TopicPartition(reply_topic, secrets.choice([*await producer.current.partitions_for(reply_topic)]))
                consumer.assign([own])
                await consumer.seek_to_end(own)
                # Resolve the end now: later it would be behind the reply to the first request.
                await consumer.position(own)
        clock = KafkaClock()
        reader = asyncio.create_task(_read(consumer, on_record, clock))
        try:
            yield Connection(producer, own, clock)
        finally:
            reader.cancel()
            with suppress(asyncio.CancelledError):
                await reader


async def _producer(stack: AsyncExitStack, how: Mapping[str, Any], timeout_s: float) -> RenewedProducer:
    def make() -> AIOKafkaProducer:
        return OwnProducer(**how, acks="all", enable_idempotence=True, max_request_size=MAX_RECORD_BYTES)

    async def stop(producer: AIOKafkaProducer) -> None:
        await _stop(producer.stop, producer.client.close, timeout_s)

    producer = RenewedProducer(make, stop)
    stack.push_async_callback(producer.stop)
    await producer.current.start()
    return producer


async def _is_there(consumer: AIOKafkaConsumer, topic: str) -> bool:
    """True if there is a topic, even one created a moment ago: brokers learn of it one after the other."""
    for _ in range(LOOKS):
        # List all topics: a lookup by name waits for the topic, and a broker may create it.
        if topic in await consumer.topics():
            return True
        await asyncio.sleep(LOOK_INTERVAL_S)
    return False


async def _read(consumer: AIOKafkaConsumer, on_record: OnRecord, clock: KafkaClock) -> None:
    while True:
        try:
            record = await consumer.getone()
        except ConsumerStoppedError:
            return
        except KafkaError:
            await asyncio.sleep(READ_BACKOFF_S)
        else:
            is_awaited = on_record(record.headers, record.value)
            if record.timestamp_type == LOG_APPEND_TIME:
                clock.note(record.timestamp, is_awaited=is_awaited)


async def _stop(stop: Callable[[], Any], cut: Callable[[], Any], timeout_s: float) -> None:
    # In its own task: without a broker aiokafka's `stop` may flush forever, or raise a spurious CancelledError with its
    # connections still open.
    stopping = asyncio.create_task(stop())
    await asyncio.wait({stopping}, timeout=timeout_s)
    if not stopping.done() or stopping.cancelled() or stopping.exception() is not None:
        stopping.cancel()
        # Bounded too: over TLS uvloop waits 30 s for the other side.
        await asyncio.wait({asyncio.ensure_future(cut())}, timeout=timeout_s)


@contextmanager
def _translate_errors(failure: str) -> Iterator[None]:
    try:
        yield
    except MessageSizeTooLargeError as problem:
        raise MemoryServiceError("too_large", f"the record has more than {MAX_RECORD_BYTES} bytes") from problem
    except InvalidTimestampError as problem:
        raise MemoryUnreachable(f"{failure}: this machine's clock is more than an hour ahead of Kafka's") from problem
    except TimeoutError as problem:
        raise MemoryUnreachable(f"{failure}: no answer in time") from problem
    except KafkaError as problem:
        raise MemoryUnreachable(f"{failure}: {problem}") from problem
