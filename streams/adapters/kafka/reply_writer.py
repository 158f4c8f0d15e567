"""Write replies; a reply that is slow for one caller waits in the background, and delays no other request.

Reply topics belong to the callers: they may be missing, come and go, or have no leader. A request does not wait for its
reply to such a topic: it is done, and may be acknowledged, while the reply waits. The number of waiting replies is
limited; the surplus is given up at once, each other one within five seconds. All that are given up are counted.

A request does wait for its reply to any other topic, so that a killed worker leaves it unacknowledged and answers it
after the restart. Replies to the shared topic have a separate producer.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from schemas.messages.records import Outgoing
from streams.adapters.kafka.clients import create_producer, hand_over, partitions_of_topics
from streams.observability.metrics import Meters
from streams.runtime.fence import GroupFence
from streams.settings import KafkaConnection

T = TypeVar("T")

# Batch single records into bursts.
#
# A produce request costs broker and worker a millisecond regardless of its content, and records of different partitions
# that come at different times need separate requests. So records are gathered: the first one after a pause is handed
# over at once, later ones together when the interval of one of them has passed: `BURST_INTERVAL_S`, or longer for
# records without a waiting caller. The order is unchanged.

BURST_INTERVAL_S = 0.025
"""Minimum interval between bursts. Only commands and acknowledgements wait for these records: a turn is answered
before."""

UNHURRIED_INTERVAL_S = 0.1
"""The same for records without a waiting caller, such as those that report a turn's vector."""


class Bursts(Generic[T]):
    """Gathers items and hands them over in bursts. Belongs to one event loop."""

    def __init__(self, hand_over: Callable[[Sequence[T]], None], interval_s: float = BURST_INTERVAL_S) -> None:
        """`hand_over` takes a burst; `interval_s` is the minimum time between two calls."""
        self._hand_over = hand_over
        self._interval_s = interval_s
        self._gathered: list[T] = []
        self._timer: asyncio.TimerHandle | None = None
        self._last = float("-inf")
        """When the last burst was handed over."""
        self._due = float("inf")
        """Time of the timer."""

    def add(self, item: T, interval_s: float | None = None) -> None:
        """Add an item to the next burst, and advance the burst if the item's `interval_s` is shorter."""
        self._gathered.append(item)
        loop = asyncio.get_running_loop()
        due = max(loop.time(), self._last + (self._interval_s if interval_s is None else interval_s))
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
        self._due, self._timer = due, loop.call_at(due, self.flush)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._gathered:
            burst, self._gathered = self._gathered, []
            self._last = asyncio.get_running_loop().time()
            self._hand_over(burst)


log = structlog.get_logger()

MAX_WAITING = 1000

MAX_WAITING_BYTES = 64 * 1024 * 1024
"""Limits of waiting replies. Each waits for five seconds at most."""

Destination = tuple[str, int | None]
"""The topic of a reply, and its partition if the caller has named one."""


class WaitingReplies:
    """Deliveries waiting for their topics in the background, limited in number and bytes.

    Belongs to one event loop.
    """

    def __init__(self) -> None:
        self._deliveries: set[asyncio.Task[bool]] = set()
        self._destinations: Counter[Destination] = Counter()
        self._bytes = 0

    def waits_for(self, out: Outgoing) -> bool:
        """True if another reply waits for the same destination."""
        return (out.topic, out.partition) in self._destinations

    def add(self, out: Outgoing, delivery: asyncio.Task[bool]) -> bool:
        """Let a delivery wait until it is done; False without room for it."""
        size = len(out.value or b"")
        if len(self._deliveries) >= MAX_WAITING or self._bytes + size > MAX_WAITING_BYTES:
            return False
        self._deliveries.add(delivery)
        self._destinations[out.topic, out.partition] += 1
        self._bytes += size
        delivery.add_done_callback(lambda done: self._remove(out, done))
        return True

    def cancel(self) -> None:
        for delivery in self._deliveries:
            delivery.cancel()

    def _remove(self, out: Outgoing, delivery: asyncio.Task[bool]) -> None:
        destination = out.topic, out.partition
        self._deliveries.discard(delivery)
        self._bytes -= len(out.value or b"")
        self._destinations[destination] -= 1
        if not self._destinations[destination]:
            del self._destinations[destination]


LOOKUP_BATCH_SIZE = 200
"""Topics of one lookup: decoding the response blocks the event loop for about 5 ms."""

LOOKUP_TIMEOUT_MS = 2000

UNUSED_TTL_S = 120.0
"""Time for which a topic is remembered after its last reply."""

Partitions = frozenset[int]


class ReplyTopics:
    """The existing reply topics and their partitions, looked up on first use: many in one request, see `Bursts`.

    Has a separate connection: aiokafka's producer asks for all its topics each time that one is missing, and logs every
    missing one each time. Belongs to one event loop, between `start` and `stop`.
    """

    def __init__(self, connection: KafkaConnection) -> None:
        self._connection = connection
        self._partitions: dict[str, Partitions] = {}
        self._last_used: dict[str, float] = {}
        self._wanted: dict[str, asyncio.Future[Partitions]] = {}
        self._bursts: Bursts[str] = Bursts(self._look_up_burst)
        self._looking_up: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._admin = AIOKafkaAdminClient(**self._connection, request_timeout_ms=LOOKUP_TIMEOUT_MS)
        await self._admin.start()

    async def stop(self) -> None:
        for looking_up in self._looking_up:
            looking_up.cancel()
        await self._admin.close()

    async def has_place(self, out: Outgoing) -> bool:
        """True if the topic, and the partition if named, of a reply exists. Asks the broker before saying no."""
        if not self.knows(out):
            lookup = self._wanted.get(out.topic)
            if lookup is None:
                lookup = self._wanted[out.topic] = asyncio.get_running_loop().create_future()
                self._bursts.add(out.topic)
            # Others may wait for the same topic: the end of this request does not cancel their lookup.
            partitions = await asyncio.shield(lookup)
            if not partitions:
                self.forget(out.topic)
                return False
            self._partitions[out.topic] = partitions
        self._last_used[out.topic] = time.monotonic()
        return self.knows(out)

    def knows(self, out: Outgoing) -> bool:
        """True if the topic and partition of a reply existed at the last lookup."""
        partitions = self._partitions.get(out.topic)
        return partitions is not None and (out.partition is None or out.partition in partitions)

    def forget(self, topic: str) -> None:
        """Look a topic up again before the next reply."""
        self._partitions.pop(topic, None)
        self._last_used.pop(topic, None)

    def drop_unused(self) -> frozenset[str]:
        """Forget the topics without a reply for `UNUSED_TTL_S`; return the others."""
        oldest = time.monotonic() - UNUSED_TTL_S
        for topic in [topic for topic, used in self._last_used.items() if used < oldest]:
            self.forget(topic)
        return frozenset(self._last_used)

    def _look_up_burst(self, topics: Sequence[str]) -> None:
        for first in range(0, len(topics), LOOKUP_BATCH_SIZE):
            looking_up = asyncio.create_task(self._look_up_batch(topics[first : first + LOOKUP_BATCH_SIZE]))
            self._looking_up.add(looking_up)
            looking_up.add_done_callback(self._looking_up.discard)

    async def _look_up_batch(self, topics: Sequence[str]) -> None:
        # A missing topic has no partitions, nor has any while the broker does not answer.
        described: Mapping[str, Partitions] = {}
        try:
            described = await partitions_of_topics(self._admin, topics)
        except (KafkaError, OSError) as problem:
            log.warning("reply topics could not be looked up", problem=repr(problem))
        finally:
            for topic in topics:
                self._wanted.pop(topic).set_result(described.get(topic, frozenset()))


REPLY_TIMEOUT_S = 5.0
"""Time limit of a reply (docs/contract.md)."""

SHARED_TIMEOUT_S = 30.0
"""The same for the shared topic if it exists: after a kill of its broker, a leader is missing for ten seconds."""

SLOW_AFTER_S = 0.25
"""Time that a request waits for a caller's topic: ten times a write under load."""

MISSING_TIMEOUT_S = 4.0
"""Time that a reply waits for a missing topic. A new topic is known to the broker within less."""

LOOKUP_PAUSE_S = 0.1

MAX_LOOKUP_PAUSE_S = 0.5
"""The pause before a missing topic is looked up again; it doubles each time."""


class ReplyWriter:
    """Writes replies, between `start` and `stop`."""

    def __init__(
        self, connection: KafkaConnection, shared_topic: str, meters: Meters, fence: GroupFence | None = None
    ) -> None:
        """`shared_topic` belongs to the service; while the `fence` is closed nothing is written."""
        self._connection = connection
        self._shared_topic = shared_topic
        self._meters = meters
        self._fence = fence
        self._topics = ReplyTopics(connection)
        self._waiting = WaitingReplies()

    async def start(self) -> None:
        self._shared, self._callers = self._producer(SHARED_TIMEOUT_S), self._producer(REPLY_TIMEOUT_S)
        await self._shared.start()
        await self._callers.start()
        await self._topics.start()
        self._pruned = asyncio.get_running_loop().time()

    async def stop(self) -> None:
        """Disconnect, dropping waiting replies."""
        self._waiting.cancel()
        await self._shared.stop()
        await self._callers.stop()
        await self._topics.stop()

    async def write(self, out: Outgoing) -> bool:
        """Write a reply; True if the broker has it, False if it waits or is given up."""
        now = asyncio.get_running_loop().time()
        deadline = now + REPLY_TIMEOUT_S
        if now - self._pruned > UNUSED_TTL_S:
            self._pruned = now
            # The producer asks for every topic that it ever wrote to, and logs those that are gone.
            if used := self._topics.drop_unused():
                self._callers.client.set_topics(set(used))
        is_shared = out.topic == self._shared_topic
        if self._waiting.waits_for(out) or not await self._has_place(out, when_slow=is_shared):
            self._wait_beside(
                out, asyncio.create_task(self._deliver_when_found(out, now + MISSING_TIMEOUT_S, deadline))
            )
            return False
        if is_shared:
            # Also while the broker is slow: in the background, the reply would be lost with the worker.
            return await self._deliver(out, now + SHARED_TIMEOUT_S if self._topics.knows(out) else deadline)
        delivery = asyncio.create_task(self._deliver(out, deadline))
        await asyncio.wait({delivery}, timeout=SLOW_AFTER_S)
        if delivery.done():
            return delivery.result()
        self._wait_beside(out, delivery)
        return False

    def _producer(self, timeout_s: float) -> AIOKafkaProducer:
        timeout_ms = int(timeout_s * 1000)
        return create_producer(
            self._connection, enable_idempotence=False, request_timeout_ms=timeout_ms, fence=self._fence
        )

    def _wait_beside(self, out: Outgoing, delivery: asyncio.Task[bool]) -> None:
        if not self._waiting.add(out, delivery):
            delivery.cancel()
            self._give_up(out, "too many replies wait for their topics")

    async def _deliver_when_found(self, out: Outgoing, missing_until: float, deadline: float) -> bool:
        """Wait until the topic and partition exist, then write the reply."""
        pause = LOOKUP_PAUSE_S
        while not await self._has_place(out):
            if asyncio.get_running_loop().time() + pause > missing_until:
                self._give_up(out, "its topic or partition is missing")
                return False
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_LOOKUP_PAUSE_S)
        return await self._deliver(out, deadline)

    async def _deliver(self, out: Outgoing, deadline: float) -> bool:
        producer = self._shared if out.topic == self._shared_topic else self._callers
        try:
            async with asyncio.timeout_at(deadline):
                # The partition may have been added since the producer's last update of its metadata.
                while out.partition is not None and out.partition not in await producer.partitions_for(out.topic):
                    await producer.client.force_metadata_update()
                    await asyncio.sleep(LOOKUP_PAUSE_S)
                await (await hand_over(producer, out))
        except (KafkaError, TimeoutError) as problem:
            # It may be gone.
            self._topics.forget(out.topic)
            self._give_up(out, repr(problem))
            return False
        return True

    async def _has_place(self, out: Outgoing, *, when_slow: bool = False) -> bool:
        """Return whether topic and partition exist, or `when_slow` if the broker does not say so in time."""
        try:
            async with asyncio.timeout(SLOW_AFTER_S):
                return await self._topics.has_place(out)
        except TimeoutError:
            return when_slow

    def _give_up(self, out: Outgoing, problem: str) -> None:
        log.info("reply given up", reply_topic=out.topic, reply_partition=out.partition, problem=problem)
        self._meters.reply_given_up()
