"""Topics in memory: what Kafka is to the map, without a broker.

Records enter by `append`; each gets a partition by its key and the next offset there, is kept, and where the map reads
the topic it is put into that topic's channel as the event that Faust would make of it. What the map has not
acknowledged is delivered again when the map starts again, as Kafka does it.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import faust
from faust.types.tuples import Message

from agents.ports.clock import Clock
from schemas.messages.records import Outgoing, Record
from streams.topics import Topics
from streams.wire.partitioning import partition_of

LONGEST_WAIT_SECONDS = 20.0
"""What takes so long in memory does not come any more."""


@dataclass(slots=True)
class Entry:
    """One record in a log."""

    record: Record
    acknowledged: bool = False


class NotedMessage(Message):
    """A message that notes its acknowledgement in the log, where Kafka's would tell Faust's consumer."""

    __slots__ = ("noted",)

    noted: Callable[[], None]

    def on_final_ack(self, consumer: Any) -> bool:
        self.noted()
        return super().on_final_ack(consumer)


class InMemoryTopics:
    """The logs of all topics, and the channels of a running map."""

    def __init__(self, topics: Topics, partitions: int, clock: Clock) -> None:
        self.names = topics
        self.partitions = partitions
        self._clock = clock
        self._logs: dict[str, list[Entry]] = {name: [] for name in topics.all()}
        self._app: faust.App | None = None
        self._channels: Mapping[str, Any] = {}
        self._readers: Mapping[str, int] = {}
        self._changed = asyncio.Event()
        self._room: int | None = None
        self.refused = False
        """Whether a record is waiting that is not taken."""

    def stop_after(self, records: int | None) -> None:
        """Take no more than so many records from now on; a further write waits. None: take all again."""
        self._room, self.refused = records, False

    def forget_acknowledged(self, records: int, topics: Collection[str]) -> None:
        """Lose the acknowledgements of the last records of each of these topics, as a kill before a commit does."""
        for name in topics:
            for entry in self._logs[name][max(0, len(self._logs[name]) - records) :]:
                entry.acknowledged = False

    async def committed(self) -> dict[tuple[str, int], int]:
        """Where the map goes on, by topic and partition: the first record that was not acknowledged, or the end."""
        ends: dict[tuple[str, int], int] = {}
        for name, log in self._logs.items():
            going_on = {one.record.partition: one.record.offset for one in reversed(self._unfinished(name))}
            for entry in log:
                record = entry.record
                ends[name, record.partition] = going_on.get(record.partition, record.offset + 1)
        return ends

    def copy_from(self, other: "InMemoryTopics") -> None:
        """Have the records that another has."""
        self._logs = {name: [replace(entry) for entry in log] for name, log in other._logs.items()}

    async def attach(self, app: faust.App, channels: Mapping[str, Any], readers: Mapping[str, int]) -> None:
        """Deliver to these channels, which are read already: first what was not acknowledged, then what comes.

        `readers` counts the agents on each: a record is acknowledged when all of them have.
        """
        self._app, self._channels, self._readers = app, channels, readers
        for name in channels:
            for entry in self._unfinished(name):
                await self._deliver(entry)

    def detach(self) -> None:
        """Deliver nothing until a pipeline is attached again."""
        self._app, self._channels = None, {}

    def has(self, topic: str) -> bool:
        """Whether a topic exists."""
        return topic in self._logs

    async def append(self, out: Outgoing) -> Record:
        """Write a record; without a key or partition it goes to partition 0."""
        if self._room is not None:
            if self._room == 0:
                self.refused = True
                await asyncio.Event().wait()
            self._room -= 1
        partition = out.partition if out.partition is not None else partition_of(out.key or b"", self.partitions)
        at_ms = out.timestamp_ms if out.timestamp_ms is not None else round(self._clock.now().timestamp() * 1000)
        offset = sum(entry.record.partition == partition for entry in self._logs[out.topic])
        entry = Entry(Record(out.topic, partition, offset, at_ms, out.key, out.value, out.headers))
        self._logs[out.topic].append(entry)
        await self._deliver(entry)
        self._notify()
        return entry.record

    def records(self, topic: str) -> list[Record]:
        """Everything that was written to a topic."""
        return [entry.record for entry in self._logs[topic]]

    def unacknowledged(self, topic: str) -> list[Record]:
        """What the map has not finished."""
        return [entry.record for entry in self._logs[topic] if not entry.acknowledged]

    async def settled(self) -> None:
        """Wait until the map has finished everything that it reads."""
        await self.until(lambda: not any(self.unacknowledged(topic) for topic in self._channels))

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so; it is looked at whenever a record is written or acknowledged."""
        async with asyncio.timeout(LONGEST_WAIT_SECONDS):
            while not condition():
                await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _unfinished(self, topic: str) -> list[Entry]:
        """Everything from the first record of each partition on that was not acknowledged: what is not committed."""
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
        channel = self._channels[entry.record.topic]
        await channel.put(await channel.decode(self._message(entry, self._app)))

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
