"""Reads what somebody waits for, on the worker's own event loop and apart from everything else.

Faust's consumer asks for all partitions of all topics at once, in a thread of its own: a question waits there until
sixty partitions are decoded, twice for the interpreter, and while the next request is written. Here a request is for
the few partitions of one topic, and its records go straight to their agent: 2.5 ms less, of time and of processor.

Enters: partitions with the offsets to begin at, again whenever partitions have come or gone. Leaves: their records, one
after another, in the order of each partition, each with the offset that was due. Guaranteed: from when `begin` or
`leave` returns, nothing is delivered of what was read before; what was read and not delivered is read again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from faust.types import TP

IDLE_POLL_TIMEOUT_MS = 1500
"""How long the broker keeps a request that it has nothing for, and how long a look for records takes."""

BACKPRESSURE_POLL_TIMEOUT_MS = 200
"""The same while an agent has no room: so long it may have some again before its partition is asked for."""

BACKOFF_S = 0.2
"""Pause after an error, so that an outage does not spin."""

log = structlog.get_logger()

Deliver = Callable[[TP, Any, int | None], Awaitable[None]]
"""Takes a record of a partition, and the offset that was due there: None or 0 at the beginning of one."""


class RequestReader:
    """Reads some partitions with a consumer of no group: who reads what is Faust's to say, and so are commits."""

    def __init__(
        self,
        connect: Callable[[], AIOKafkaConsumer],
        deliver: Deliver,
        full: Callable[[], Collection[TP]],
        defect: Callable[[BaseException], Awaitable[None]],
    ) -> None:
        """Take what makes a consumer, and whom records go to.

        `full` tells the partitions whose agent has no room at present; `defect` is told of what no outage explains.
        """
        self._connect = connect
        self._deliver = deliver
        self._full = full
        self._defect = defect
        self._due: dict[TP, int | None] = {}
        self._consumer: AIOKafkaConsumer | None = None
        self._reading: asyncio.Task[None] | None = None

    def begin(self, places: Mapping[TP, int | None]) -> None:
        """Read these and no others, each from its offset on; None or 0 is its beginning."""
        self._due = dict(places)
        self._start_again()

    def leave(self, places: Collection[TP]) -> None:
        """Read these no more."""
        if not self._due.keys().isdisjoint(places):
            self._due = {place: due for place, due in self._due.items() if place not in places}
            self._start_again()

    def highwater(self, place: TP) -> int | None:
        """The offset after the last record that the broker has told of; None before it has."""
        there = TopicPartition(*place)
        if self._consumer is None or there not in self._consumer.assignment():
            return None
        told: int | None = self._consumer.highwater(there)
        return told

    async def close(self) -> None:
        """Stop and disconnect."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})
        if self._consumer is not None:
            await self._consumer.stop()

    def _start_again(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        self._reading = asyncio.create_task(self._read(self._reading))

    async def _read(self, before: asyncio.Task[None] | None) -> None:
        try:
            if before is not None:
                await asyncio.wait({before})
            await self._read_on(await self._connected())
        except Exception as problem:
            log.exception("requests are read no more")
            await self._defect(problem)

    async def _read_on(self, consumer: AIOKafkaConsumer) -> None:
        consumer.assign([TopicPartition(*place) for place in self._due])
        for place, due in self._due.items():
            if due:
                consumer.seek(TopicPartition(*place), due)
        while self._due:
            try:
                await self._read_some(consumer)
            except KafkaError as problem:
                log.warning("requests could not be read; they are asked for again", problem=repr(problem))
                await asyncio.sleep(BACKOFF_S)

    async def _read_some(self, consumer: AIOKafkaConsumer) -> None:
        full = self._full()
        room = [TopicPartition(*place) for place in self._due if place not in full]
        if not room:
            await asyncio.sleep(BACKPRESSURE_POLL_TIMEOUT_MS / 1000)
            return
        read = await consumer.getmany(
            *room, timeout_ms=IDLE_POLL_TIMEOUT_MS if len(room) == len(self._due) else BACKPRESSURE_POLL_TIMEOUT_MS
        )
        for there, records in read.items():
            place = TP(*there)
            for record in records:
                await self._deliver(place, record, self._due[place])
                self._due[place] = record.offset + 1

    async def _connected(self) -> AIOKafkaConsumer:
        while self._consumer is None:
            consumer = self._connect()
            try:
                await consumer.start()
            except BaseException as problem:
                await consumer.stop()
                if not isinstance(problem, KafkaError):
                    raise
                log.warning("no connection to read requests with", problem=repr(problem))
                await asyncio.sleep(BACKOFF_S)
            else:
                self._consumer = consumer
        return self._consumer


def create_request_consumer(servers: list[str]) -> AIOKafkaConsumer:
    """A consumer that is told what to read, from where, and begins where there is no such offset at the oldest one."""
    return AIOKafkaConsumer(
        bootstrap_servers=servers,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=IDLE_POLL_TIMEOUT_MS,
    )
