"""In-memory topics in place of Kafka.

`append` gives a record a partition by its key and the next offset there, and delivers it to the channel of its topic
as the event that Faust would make of it, if the pipeline reads the topic. A restarted pipeline gets unacknowledged
records again, as from Kafka.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any, cast

import faust
from faust.types.tuples import Message

from agents.ports.clock import Clock
from schemas.messages.records import Outgoing, Record
from streams.runtime.delivery import HeldEvent
from streams.topics import Topics
from streams.wire.partitioning import partition_of

LONGEST_WAIT_SECONDS = 20.0
"""Timeout of waits; records in memory take far less."""


@dataclass(slots=True)
class Entry:
    record: Record
    acknowledged: bool = False


class NotedMessage(Message):
    """A message that marks its record as acknowledged, in place of Faust's consumer."""

    __slots__ = ("noted",)

    noted: Callable[[], None]

    def on_final_ack(self, consumer: Any) -> bool:
        self.noted()
        return super().on_final_ack(consumer)


@dataclass(frozen=True, slots=True)
class InMemoryRequestLog:
    """Implements `streams.flow.job_log.RequestLog` over one topic."""

    topics: "InMemoryTopics"
    topic: str

    async def is_pending(self, partition: int, offset: int) -> bool:
        places = [(record.partition, record.offset) for record in self.topics.unacknowledged(self.topic)]
        return (partition, offset) in places


class InMemoryTopics:
    def __init__(self, topics: Topics, partitions: int, clock: Clock) -> None:
        self.names = topics
        self.partitions = partitions
        self._clock = clock
        self._logs: dict[str, list[Entry]] = {name: [] for name in topics.all()}
        self._ends: Counter[tuple[str, int]] = Counter()
        self._app: faust.App | None = None
        self._channels: Mapping[str, Any] = {}
        self._readers: Mapping[str, int] = {}
        self._changed = asyncio.Event()
        self._room: int | None = None
        self.refused = False
        """True if a write waits for `stop_after`."""

    def stop_after(self, records: int | None) -> None:
        """Accept `records` more records, then block writes. None removes the limit."""
        self._room, self.refused = records, False

    def forget_acknowledged(self, records: int, topics: Collection[str]) -> None:
        """Undo the acknowledgements of the last records of each topic, as a kill before a commit does."""
        for name in topics:
            for entry in self._logs[name][max(0, len(self._logs[name]) - records) :]:
                entry.acknowledged = False

    async def committed(self) -> dict[tuple[str, int], int]:
        """Return the committed offsets: the first unacknowledged record of each partition, or its end."""
        ends: dict[tuple[str, int], int] = {}
        for name, log in self._logs.items():
            going_on = {each.record.partition: each.record.offset for each in reversed(self._unfinished(name))}
            for entry in log:
                record = entry.record
                ends[name, record.partition] = going_on.get(record.partition, record.offset + 1)
        return ends

    def copy_from(self, other: "InMemoryTopics") -> None:
        self._logs = {name: [replace(entry) for entry in log] for name, log in other._logs.items()}
        self._ends = Counter(other._ends)

    async def attach(self, app: faust.App, channels: Mapping[str, Any], readers: Mapping[str, int]) -> None:
        """Deliver to these channels: first the unacknowledged records, then new ones.

        `readers` counts the agents of each topic: all of them must acknowledge a record.
        """
        self._app, self._channels, self._readers = app, channels, readers
        for name in channels:
            for entry in self._unfinished(name):
                await self._deliver(entry)

    def detach(self) -> None:
        """Stop delivery until the next `attach`."""
        self._app, self._channels = None, {}

    def has(self, topic: str) -> bool:
        return topic in self._logs

    async def append(self, out: Outgoing) -> Record:
        """Write a record; without a key or partition it goes to partition 0."""
        await self.have_room()
        partition = out.partition if out.partition is not None else partition_of(out.key or b"", self.partitions)
        at_ms = out.timestamp_ms if out.timestamp_ms is not None else round(self._clock.now().timestamp() * 1000)
        offset = self._ends[out.topic, partition]
        self._ends[out.topic, partition] += 1
        entry = Entry(Record(out.topic, partition, offset, at_ms, out.key, out.value, out.headers))
        self._logs[out.topic].append(entry)
        await self._deliver(entry)
        self._notify()
        return entry.record

    async def have_room(self) -> None:
        """Take the room of one record, or wait for ever."""
        if self._room is not None:
            if self._room == 0:
                self.refused = True
                await asyncio.Event().wait()
            self._room -= 1

    def records(self, topic: str) -> list[Record]:
        return [entry.record for entry in self._logs[topic]]

    def unacknowledged(self, topic: str) -> list[Record]:
        return [entry.record for entry in self._logs[topic] if not entry.acknowledged]

    async def settled(self) -> None:
        """Wait until all delivered records are acknowledged."""
        await self.until(lambda: all(map(self._is_settled, self._channels)))

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition, checked at each write and acknowledgement. Raises TimeoutError with what goes on."""
        try:
            async with asyncio.timeout(LONGEST_WAIT_SECONDS):
                while not condition():
                    await self._changed.wait()
        except TimeoutError:
            raise TimeoutError(self._going_on()) from None

    def _going_on(self) -> str:
        """Tell which records are not acknowledged, and where each task stands: a rare hang may never come again."""
        text = StringIO()
        for topic in self._channels:
            if records := self.unacknowledged(topic):
                text.write(f"{topic}: {[(record.partition, record.offset) for record in records]}\n")
        for task in asyncio.all_tasks():
            task.print_stack(file=text)
        return text.getvalue()

    def _is_settled(self, topic: str) -> bool:
        """True if all records are acknowledged. The last ones are looked at first: those are open longest."""
        return all(entry.acknowledged for entry in reversed(self._logs[topic]))

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _unfinished(self, topic: str) -> list[Entry]:
        """Return the uncommitted records: those from the first unacknowledged one of each partition."""
        unfinished: set[int] = set()
        entries = []
        for entry in self._logs[topic]:
            if not entry.acknowledged:
                unfinished.add(entry.record.partition)
            if entry.record.partition in unfinished:
                entries.append(entry)
        return entries

    async def _deliver(self, entry: Entry) -> None:
        if self._app is None or entry.record.topic not in self._channels:
            return
        message = self._message(entry, self._app)
        for inbox in cast("Any", self._app).inboxes[entry.record.topic]:
            inbox.put(HeldEvent(message, self._app.consumer))

    def _message(self, entry: Entry, app: faust.App) -> NotedMessage:
        record = entry.record
        message = NotedMessage(
            record.topic,
            record.partition,
            record.offset,
            record.timestamp_ms / 1000,
            0,
            cast("Any", record.headers),
            record.key,
            record.value,
            None,
            generation_id=app.consumer_generation_id,
        )

        def note() -> None:
            entry.acknowledged = True
            self._notify()

        message.noted = note
        message.incref(self._readers[record.topic])
        return message
