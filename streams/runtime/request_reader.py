"""Reads the topics with waiting callers on the worker's event loop, apart from Faust's consumer.

Faust's consumer fetches all partitions of all topics at once, in its own thread: a query waits there until sixty
partitions are decoded, twice for the interpreter, and while the next request is written. Here a fetch is for the few
partitions of one topic, and its records go straight to their agent: 2.5 ms less latency and processor time.

Records are delivered one after another, in the order of each partition, each with the expected offset. Guaranteed: once
`begin` or `leave` has returned, no record read before it is delivered; undelivered records are read again. A consumer
without a response for a minute is replaced.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from faust.types import TP
from modestream_client.kafka.log_reader import log_consumer, next_offset

from streams.runtime.fence import running_time
from streams.runtime.isolation import readable_end
from streams.runtime.response_watch import SILENCE_S, ResponseWatch
from streams.runtime.write_times import WriteTimes
from streams.settings import KafkaConnection

IDLE_POLL_TIMEOUT_MS = 1500
"""Time that the broker may delay an empty response, and the duration of one poll."""

BACKPRESSURE_POLL_TIMEOUT_MS = 200
"""The same while an agent's inbox is full: its partition is checked again after this time."""

YIELD_EVERY = 50
"""Records between two pauses for other tasks: about 2 ms."""

MAX_PARTITION_FETCH_BYTES = 16 * 1024 * 1024
"""Bytes of one partition in one response: records of a megabyte come several at a time, others with them."""

BACKOFF_S = 0.2
"""Pause after an error."""

log = structlog.get_logger()

Deliver = Callable[[TP, Any, int | None], Awaitable[None]]
"""Takes a record of a partition and the expected offset: None or 0 at the beginning of the partition."""


class RequestReader:
    """Reads some partitions with a consumer without a group: assignment and commits are Faust's."""

    def __init__(
        self,
        connect: Callable[[], AIOKafkaConsumer],
        deliver: Deliver,
        is_full: Callable[[TP], bool],
        defect: Callable[[BaseException], Awaitable[None]],
    ) -> None:
        """`is_full` names partitions whose agents must catch up; `defect` gets any exception but Kafka's.

        `connect` makes a consumer; `deliver` takes the records.
        """
        self._connect = connect
        self._deliver = deliver
        self._is_full = is_full
        self._defect = defect
        self._expected: dict[TP, int | None] = {}
        self._write_times: dict[TP, WriteTimes] = {}
        self._consumer: AIOKafkaConsumer | None = None
        self._watch = ResponseWatch()
        self._reading: asyncio.Task[None] | None = None

    def begin(self, offsets: Mapping[TP, int | None]) -> None:
        """Read exactly these partitions, each from its offset on; None or 0 is its beginning."""
        self._expected = dict(offsets)
        self._write_times = {tp: WriteTimes() for tp in offsets}
        self._restart()

    def leave(self, tps: Collection[TP]) -> None:
        """Stop reading these partitions."""
        if not self._expected.keys().isdisjoint(tps):
            self._expected = {tp: offset for tp, offset in self._expected.items() if tp not in tps}
            self._restart()

    def highwater(self, tp: TP) -> int | None:
        """Return the end offset of the readable records, as last reported by the broker; None before that."""
        partition = TopicPartition(*tp)
        if self._consumer is None or partition not in self._consumer.assignment():
            return None
        return readable_end(self._consumer, partition)

    def next_offset(self, tp: TP) -> int | None:
        """Return the offset that is read next; None while unknown."""
        partition = TopicPartition(*tp)
        if self._consumer is None or partition not in self._consumer.assignment():
            return None
        return next_offset(self._consumer, partition)

    def written_after(self, tp: TP, offset: int) -> float | None:
        """Return a moment of `running_time` after which a record was written; None if unknown."""
        times = self._write_times.get(tp)
        return None if times is None else times.written_after(offset)

    async def close(self) -> None:
        """Stop and disconnect."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})
        if self._consumer is not None:
            await self._consumer.stop()

    def _restart(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        self._reading = asyncio.create_task(self._read(self._reading))

    async def _read(self, previous: asyncio.Task[None] | None) -> None:
        try:
            if previous is not None:
                await asyncio.wait({previous})
            while True:
                await self._poll_until_silent(await self._connected())
                if not self._watch.is_silent:
                    return
        except Exception as problem:
            log.exception("reading requests failed")
            await self._defect(problem)

    async def _poll_until_silent(self, consumer: AIOKafkaConsumer) -> None:
        """Poll while there is anything to read, and the broker answers."""
        consumer.assign([TopicPartition(*tp) for tp in self._expected])
        for tp, offset in self._expected.items():
            if offset:
                consumer.seek(TopicPartition(*tp), offset)
        self._watch = ResponseWatch()
        while self._expected and not self._watch.is_silent:
            try:
                await self._poll(consumer)
            except KafkaError as problem:
                log.warning("reading requests failed, retrying", problem=repr(problem))
                await asyncio.sleep(BACKOFF_S)

    async def _poll(self, consumer: AIOKafkaConsumer) -> None:
        with_room = [TopicPartition(*tp) for tp in self._expected if not self._is_full(tp)]
        if not with_room:
            self._watch.note({})
            await asyncio.sleep(BACKPRESSURE_POLL_TIMEOUT_MS / 1000)
            return
        all_have_room = len(with_room) == len(self._expected)
        timeout_ms = IDLE_POLL_TIMEOUT_MS if all_have_room else BACKPRESSURE_POLL_TIMEOUT_MS
        fetched = await consumer.getmany(*with_room, timeout_ms=timeout_ms)
        self._note_ends(consumer, with_room)
        self._watch.note({partition: consumer.last_poll_timestamp(partition) for partition in with_room})
        for partition, records in fetched.items():
            tp = TP(*partition)
            for number, record in enumerate(records):
                await self._deliver(tp, record, self._expected[tp])
                self._expected[tp] = record.offset + 1
                if number % YIELD_EVERY == YIELD_EVERY - 1:
                    await asyncio.sleep(0)

    def _note_ends(self, consumer: AIOKafkaConsumer, partitions: Collection[TopicPartition]) -> None:
        now_ms, steady_s = round(time.time() * 1000), running_time()
        for partition in partitions:
            end, response_ms = consumer.highwater(partition), consumer.last_poll_timestamp(partition)
            if end is not None and response_ms is not None and (times := self._write_times.get(TP(*partition))):
                times.note(end, response_ms, now_ms, steady_s)

    async def _connected(self) -> AIOKafkaConsumer:
        """Return the consumer, replaced if silent. Until a new one has started, ends are those last reported."""
        while self._consumer is None or self._watch.is_silent:
            consumer = self._connect()
            try:
                await consumer.start()
            except BaseException as problem:
                await consumer.stop()
                if not isinstance(problem, KafkaError):
                    raise
                log.warning("connecting to read requests failed, retrying", problem=repr(problem))
                await asyncio.sleep(BACKOFF_S)
            else:
                replaced, self._consumer, self._watch = self._consumer, consumer, ResponseWatch()
                if replaced is not None:
                    log.warning("no response to requests' fetches, connected again", silent_s=SILENCE_S)
                    with suppress(KafkaError):
                        await replaced.stop()
        return self._consumer


def create_request_consumer(connection: KafkaConnection, isolation_level: str) -> AIOKafkaConsumer:
    """Create a consumer without a group that starts at the oldest record where an offset does not exist."""
    return log_consumer(
        connection,
        fetch_max_wait_ms=IDLE_POLL_TIMEOUT_MS,
        max_partition_fetch_bytes=MAX_PARTITION_FETCH_BYTES,
        isolation_level=isolation_level,
    )
