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
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from faust.types import TP
from modestream_client.kafka.log_reader import log_consumer, next_offset

from streams.runtime.fence import running_time
from streams.settings import KafkaConnection

# Records of an open transaction are hidden from a `read_committed` consumer, with all later ones of the partition.
# The end of a transaction is a control record: it takes an offset, and no consumer ever returns it.
READ_COMMITTED = "read_committed"


def set_isolation_level(consumer: AIOKafkaConsumer, level: str) -> None:
    """Set the isolation level of a consumer that is not started."""
    consumer._isolation_level = level  # noqa: SLF001 - Faust creates its consumer without a setting for it


def readable_end(consumer: AIOKafkaConsumer, partition: TopicPartition) -> int | None:
    """Return the offset after the last readable record, as of the last fetch; None before it."""
    if consumer._isolation_level == READ_COMMITTED:  # noqa: SLF001
        stable: int | None = consumer.last_stable_offset(partition)
        if stable is None or stable >= 0:
            return stable
    end: int | None = consumer.highwater(partition)
    return end


# An upper bound of a record's age, without the time of day of any machine.
#
# Enters: the end of a partition's log in each response to a fetch. Leaves: a moment after which a record was written:
# the log ended before it in a response that was requested after the former one had come. Clocks of callers, brokers and
# workers may disagree by any amount; moments are those of a steady clock.

MIN_STEP_S = 0.1
"""Minimum distance between two stored end offsets."""

MAX_ENDS = 256
"""Number of stored ends: half a minute under load. The age of an earlier record is unknown."""


class WriteTimes:
    """The ends of one partition's log."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._asked_after: list[float] = []
        """Earliest time at which each end was requested."""
        self._response: int | None = None
        self._former_came_s: float | None = None
        self._looked_s: float | None = None

    def note(self, end: int, response_ms: int, now_ms: int, steady_s: float) -> None:
        """Note the end in the last response. Call it after every poll, with or without a response.

        `response_ms` is the time of day at which it came and distinguishes it from others, `now_ms` the present one.
        """
        looked_s, self._looked_s = self._looked_s, steady_s
        if response_ms == self._response:
            return
        self._response = response_ms
        former_s, self._former_came_s = self._former_came_s, _came_s(looked_s, now_ms - response_ms, steady_s)
        if former_s is not None and (not self._asked_after or former_s - self._asked_after[-1] >= MIN_STEP_S):
            self._ends.append(end)
            self._asked_after.append(former_s)
            del self._ends[:-MAX_ENDS], self._asked_after[:-MAX_ENDS]

    def written_after(self, offset: int) -> float | None:
        """Return a moment after which the record was written, on the steady clock; None if unknown."""
        place = bisect_right(self._ends, offset)
        return self._asked_after[place - 1] if place else None


# Detect a consumer that is no longer answered, partition by partition.
#
# Enters: after each poll, the last response for each fetched partition. Leaves: true once one of them has had no other
# response for a minute. A consumer that fetches nothing learns of no end either, so it has no lag.

SILENCE_S = 60.0
"""The broker answers each fetch within 1.5 s, and aiokafka repeats a request after 40 s."""


class ResponseWatch:
    """The last responses to one consumer."""

    def __init__(self) -> None:
        self.is_silent = False
        """True if a partition had no response for `SILENCE_S` seconds at the last check."""
        self._last: dict[TopicPartition, tuple[int | None, float]] = {}
        """The last response, and when it was first seen, on a steady clock."""

    def note(self, responses: Mapping[TopicPartition, int | None]) -> None:
        """Remember each fetched partition's last response; drop the others."""
        now, before = time.monotonic(), self._last
        self._last = {
            partition: seen if (seen := before.get(partition)) and seen[0] == response else (response, now)
            for partition, response in responses.items()
        }
        self.is_silent = any(now - since > SILENCE_S for _, since in self._last.values())


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


def _came_s(looked_s: float | None, age_ms: int, steady_s: float) -> float | None:
    """Return the earliest time of a response: after the last check, which did not see it.

    Its age by the time of day is closer, unless the clock was set meanwhile.
    """
    if looked_s is None or age_ms < 0:
        return looked_s
    return max(looked_s, steady_s - age_ms / 1000)
