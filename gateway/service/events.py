"""Events of memories, read from the service's internal events and fanned out to listeners by user.

Enters: records of `remembered`, `embedded`, `changes`, `consolidated`. Leaves: `Event`s of a user, for callers that may
read their project. Guaranteed: at least one event for each change; no text of a memory; bounded memory.

An event's id holds the partition of the user and, for each followed topic, the offset read so far. To resume, all
buffered events of the user behind these offsets are sent; if some may be gone, the listener gets `reset`: load again. A
listener that reads too slowly gets `reset` too, and its stream ends.

`Receipts` keeps the latest receipt of each forgetting: bounded, without names and texts.
"""

import asyncio
import re
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from pydantic_core import from_json

from gateway.service.access import may_read_project, require_user
from gateway.service.calls import Call, Json, Refused
from gateway.service.requests import CheckedRequests
from schemas.messages.records import Record

EventType = Literal["remembered", "embedded", "moved", "superseded", "forgotten", "consolidated"]

TOPICS = ("remembered", "embedded", "changes", "consolidated")
"""The topics of internal events, in the order of the offsets in an event's id."""

MAX_MEMORIES = 50_000
"""Memories whose last project, mode and version are remembered, about 15 MB, to tell a move from a new memory."""

MAX_MOVES = 1_000
"""Moves by commands, remembered until their memories are published again."""

MOVE_MS = 60_000
"""Milliseconds within which a republished memory counts as moved by an earlier command."""

ANY_MEMORY = "*"
"""In a move: all memories of a mode."""

MAX_BUFFERED = 20_000
"""Events for listeners that reconnect, about 10 MB."""

MAX_WAITING = 1_000

EVENT_ID = re.compile(r"(\d{1,9})((?:-\d{1,18})+)\Z")


class Event(NamedTuple):
    """One change of one memory; an unknown field is None."""

    type: EventType
    memory_id: str
    mode: str | None
    project_id: str | None
    version: int | None
    at: str

    def as_json(self) -> Json:
        return self._asdict()


class _MemoryState(NamedTuple):
    boundary: str
    project_id: str | None = None
    mode: str | None = None
    version: int | None = None


class EventReader:
    """Reads records into events. Remembers the last memories and moves, bounded."""

    def __init__(self) -> None:
        self._memories: OrderedDict[str, _MemoryState] = OrderedDict()
        self._moves: OrderedDict[tuple[str, str, str], int] = OrderedDict()

    def read(self, key: bytes | None, value: bytes | None, timestamp_ms: int) -> list[tuple[str, Event]]:
        """Return boundary and event for each change in a record; an unreadable record has none."""
        try:
            return list(self._events((key or b"").decode(), from_json(value or b""), timestamp_ms))
        except (ValueError, KeyError, TypeError, AttributeError):
            return []

    def _events(self, boundary: str, record: Json, at_ms: int) -> Iterator[tuple[str, Event]]:
        match record.get("schema"):
            case "remembered.v1":
                yield self._remembered(record["memory"], at_ms)
            case "forgotten.v1":
                yield from self._of("forgotten", boundary, record["memory_id"], at_ms)
                self._memories.pop(record["memory_id"], None)
            case "embedded.v1":
                for embedded in (record, *record.get("also", ())):
                    if embedded["status"] == "ready":
                        yield from self._of("embedded", boundary, embedded["memory_id"], at_ms, mode=embedded["mode"])
            case "consolidated.v1":
                for memory_id in record["created"]:
                    yield from self._of("consolidated", boundary, memory_id, at_ms)
            case "change.v1" if record["action"] == "move":
                self._note_move(boundary, record, at_ms)

    def _remembered(self, memory: Json, at_ms: int) -> tuple[str, Event]:
        """Tell a new or edited memory from a moved or superseded one; a recovery repeats the former."""
        memory_id, mode, boundary = memory["memory_id"], memory["mode"], memory["boundary"]
        before = self._memories.get(memory_id)
        if before and before.mode:
            is_moved = before.mode != mode
        else:
            commands = (self._moves.get((boundary, moved, mode)) for moved in (memory_id, ANY_MEMORY))
            is_moved = any(moved_ms is not None and at_ms - moved_ms < MOVE_MS for moved_ms in commands)
        kind: EventType = "superseded" if memory.get("superseded_by") else "moved" if is_moved else "remembered"
        version = int(memory.get("dropped_versions", 0)) + len(memory["versions"])
        self._memories[memory_id] = _MemoryState(boundary, memory["scope"].get("project_id"), mode, version)
        self._memories.move_to_end(memory_id)
        if len(self._memories) > MAX_MEMORIES:
            self._memories.popitem(last=False)
        return next(self._of(kind, boundary, memory_id, at_ms))

    def _note_move(self, boundary: str, change: Json, at_ms: int) -> None:
        moved = [change["memory_id"]] if change.get("memory_id") else change.get("memory_ids")
        for memory_id in moved or [ANY_MEMORY]:
            self._moves[boundary, memory_id, str(change["to"])] = at_ms
        while len(self._moves) > MAX_MOVES:
            self._moves.popitem(last=False)

    def _of(
        self, kind: EventType, boundary: str, memory_id: str, at_ms: int, *, mode: str | None = None
    ) -> Iterator[tuple[str, Event]]:
        """Yield the event, unless neither the record nor an earlier one names the boundary."""
        memory = self._memories.get(memory_id, _MemoryState(boundary))
        if boundary or memory.boundary:
            at = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            event = Event(kind, memory_id, mode or memory.mode, memory.project_id, memory.version, at)
            yield boundary or memory.boundary, event


class Sent(NamedTuple):
    """Message to a listener: an id to resume from, and an event. `opened` is the first, `reset` says: load again."""

    id: str
    event: Event | Literal["opened", "reset"]


class _Buffered(NamedTuple):
    boundary: str
    topic: int
    partition: int
    offset: int
    sent: Sent


class Feed:
    """The events of all users, and their listeners. Belongs to one event loop."""

    def __init__(self, max_buffered: int = MAX_BUFFERED, max_waiting: int = MAX_WAITING) -> None:
        self._reader = EventReader()
        self._buffer: deque[_Buffered] = deque()
        self._max_buffered = max_buffered
        self._max_waiting = max_waiting
        self._starts: dict[tuple[int, int], int] = {}
        self._read_to: dict[int, list[int]] = {}
        self._listeners: dict[str, set[asyncio.Queue[Sent | None]]] = {}

    def begin(self, starts: Mapping[tuple[str, int], int]) -> None:
        """Take the next offsets of each partition; everything buffered may have a gap behind it."""
        self._buffer.clear()
        for (topic, partition), offset in starts.items():
            number = TOPICS.index(topic)
            self._starts[number, partition] = offset
            self._read_to.setdefault(partition, [0] * len(TOPICS))[number] = offset

    def take(
        self, topic: str, partition: int, offset: int, timestamp_ms: int, key: bytes | None, value: bytes | None
    ) -> None:
        """Take one record and publish its events to the listeners of its boundary."""
        number = TOPICS.index(topic)
        read_to = self._read_to.setdefault(partition, [0] * len(TOPICS))
        events = self._reader.read(key, value, timestamp_ms)
        # Before the last event of a record its id names the record itself: a listener that resumes there gets all.
        for count, (boundary, event) in enumerate(events, 1):
            read_to[number] = offset + (count == len(events))
            self._publish(_Buffered(boundary, number, partition, offset, Sent(self._id(partition), event)))
        read_to[number] = offset + 1

    async def listen(self, boundary: str, partition: int, after: str | None) -> AsyncIterator[Sent]:
        """Yield `opened`, then events of a boundary from now on, or from behind the id `after`.

        Ends behind the `reset` of a slow listener.
        """
        queue: asyncio.Queue[Sent | None] = asyncio.Queue(self._max_waiting)
        missed = [] if after is None else self._missed(boundary, partition, after)
        self._listeners.setdefault(boundary, set()).add(queue)
        try:
            yield Sent(self._id(partition) if after is None or missed is None else after, "opened")
            if missed is None:
                yield Sent(self._id(partition), "reset")
            for sent in missed or ():
                yield sent
            while (new := await queue.get()) is not None:
                yield new
            yield Sent(self._id(partition), "reset")
        finally:
            listeners = self._listeners.get(boundary, set())
            listeners.discard(queue)
            if not listeners:
                self._listeners.pop(boundary, None)

    def _missed(self, boundary: str, partition: int, after: str) -> Sequence[Sent] | None:
        """Return the buffered events after an id; None if some may have been dropped."""
        parts = EVENT_ID.match(after)
        offsets = [int(offset) for offset in parts[2].split("-")[1:]] if parts else []
        if parts is None or int(parts[1]) != partition or len(offsets) != len(TOPICS):
            return None
        if any(offset < self._starts.get((topic, partition), 0) for topic, offset in enumerate(offsets)):
            return None
        return [
            buffered.sent
            for buffered in self._buffer
            if buffered.boundary == boundary and buffered.offset >= offsets[buffered.topic]
        ]

    def _publish(self, new: _Buffered) -> None:
        self._buffer.append(new)
        if len(self._buffer) > self._max_buffered:
            gone = self._buffer.popleft()
            source = (gone.topic, gone.partition)
            self._starts[source] = max(self._starts.get(source, 0), gone.offset + 1)
        for queue in list(self._listeners.get(new.boundary, ())):
            if not queue.full():
                queue.put_nowait(new.sent)
                continue
            # Too slow: waiting messages are dropped, so that the listener reads the end, and a reset, next.
            while not queue.empty():
                queue.get_nowait()
            queue.put_nowait(None)
            self._listeners[new.boundary].discard(queue)

    def _id(self, partition: int) -> str:
        return "-".join(map(str, (partition, *self._read_to.get(partition, [0] * len(TOPICS)))))


async def already_begun() -> None:
    """Return at once: the feed already reads."""


class EventStreams:
    """Opens streams of one user's events. `begin` returns once the feed reads: it starts with its first listener."""

    def __init__(
        self, requests: CheckedRequests, feed: Feed, begin: Callable[[], Awaitable[None]] = already_begun
    ) -> None:
        self._requests = requests
        self._feed = feed
        self._begin = begin

    async def open(self, call: Call, after: str | None) -> AsyncIterator[Sent]:
        """Return the user's events from now on, or from behind the id `after`. Raises Refused."""
        require_user(call.caller, call.user_id, "read")
        partition = await self._requests.partition_of(call.user_id)
        await self._begin()
        events = self._feed.listen(self._requests.key_of(call.user_id), partition, after)
        return (
            sent
            async for sent in events
            if isinstance(sent.event, str) or may_read_project(call.caller, call.user_id, sent.event.project_id)
        )


TOPIC = "receipts"

MAX_RECEIPTS = 50_000
"""Receipts in memory, the latest ones: 35 MB."""

ARRIVAL_S = 1.0
"""Seconds that a receipt may take from its command's answer until it is read here."""


class Receipts:
    """Receipts by id, for any caller: they name no user and no text."""

    def __init__(self, begin: Callable[[], Awaitable[None]] = already_begun) -> None:
        """`begin` starts the follower of the topic, and returns once it has read what was there."""
        self._begin = begin
        self._receipts: OrderedDict[bytes, bytes] = OrderedDict()
        self._arrived = asyncio.Event()

    def take(self, records: Sequence[Record]) -> None:
        for record in records:
            if record.key is not None and record.value is not None:
                self._receipts[record.key] = record.value
                self._receipts.move_to_end(record.key)
        while len(self._receipts) > MAX_RECEIPTS:
            self._receipts.popitem(last=False)
        self._arrived.set()

    async def get(self, receipt_id: str) -> Json:
        """Return the latest of a receipt. Raises Refused."""
        await self._begin()
        key = receipt_id.encode("utf-8", "replace")
        try:
            async with asyncio.timeout(ARRIVAL_S):
                while key not in self._receipts:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            raise Refused("not_found", "there is no receipt of this id", names_resource=True) from None
        shown: Json = from_json(self._receipts[key])
        return shown
