"""Fan events out to listeners by user; the last ones are kept, so that a listener can resume on any gateway.

An event's id holds the partition of the user and, for each followed topic, the offset up to which it was read. It is
resumed by sending all kept events of the user behind these offsets; where some may be gone, the listener gets `reset`:
load again. A listener that reads too slowly gets `reset` too, and its stream ends.
"""

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Literal, NamedTuple

from gateway.service.events import TOPICS, Event, EventReader

MAX_KEPT = 20_000
"""Events that are kept for listeners that come back, some 10 MB."""

MAX_WAITING = 1_000
"""Events that wait for one listener."""

EVENT_ID = re.compile(r"(\d{1,9})((?:-\d{1,18})+)\Z")


class Sent(NamedTuple):
    """What a listener gets: an id to resume from, and an event. `opened` is the first, `reset` says: load again."""

    id: str
    event: Event | Literal["opened", "reset"]


class _Kept(NamedTuple):
    boundary: str
    topic: int
    partition: int
    offset: int
    id: str
    event: Event


class Feed:
    """The events of all users, and their listeners. Belongs to one event loop."""

    def __init__(self, max_kept: int = MAX_KEPT, max_waiting: int = MAX_WAITING) -> None:
        self._reader = EventReader()
        self._kept: deque[_Kept] = deque()
        self._max_kept = max_kept
        self._max_waiting = max_waiting
        self._starts: dict[tuple[int, int], int] = {}
        self._read_to: dict[int, list[int]] = {}
        self._listeners: dict[str, set[asyncio.Queue[_Kept | None]]] = {}

    def begin(self, starts: Mapping[tuple[str, int], int]) -> None:
        """Take the offsets of the first records to come; all that was kept may have a gap behind it."""
        self._kept.clear()
        for (topic, partition), offset in starts.items():
            number = TOPICS.index(topic)
            self._starts[number, partition] = offset
            self._read_to.setdefault(partition, [0] * len(TOPICS))[number] = offset

    def take(
        self, topic: str, partition: int, offset: int, timestamp_ms: int, key: bytes | None, value: bytes | None
    ) -> None:
        """Take one record and tell the listeners of its boundary."""
        number = TOPICS.index(topic)
        read_to = self._read_to.setdefault(partition, [0] * len(TOPICS))
        events = self._reader.read(key, value, timestamp_ms)
        # Before the last event of a record its id names the record itself: a listener that resumes there gets all.
        for place, (boundary, event) in enumerate(events, 1):
            read_to[number] = offset + (place == len(events))
            self._keep(_Kept(boundary, number, partition, offset, self._id(partition), event))
        read_to[number] = offset + 1

    async def listen(self, boundary: str, partition: int, after: str | None) -> AsyncIterator[Sent]:
        """Yield `opened`, then events of a boundary from now on, or from behind the id `after`.

        Ends behind the `reset` of a slow listener.
        """
        queue: asyncio.Queue[_Kept | None] = asyncio.Queue(self._max_waiting)
        missed = [] if after is None else self._missed(boundary, partition, after)
        self._listeners.setdefault(boundary, set()).add(queue)
        try:
            yield Sent(self._id(partition) if after is None or missed is None else after, "opened")
            if missed is None:
                yield Sent(self._id(partition), "reset")
            for one in missed or ():
                yield Sent(one.id, one.event)
            while (kept := await queue.get()) is not None:
                yield Sent(kept.id, kept.event)
            yield Sent(self._id(partition), "reset")
        finally:
            listeners = self._listeners.get(boundary, set())
            listeners.discard(queue)
            if not listeners:
                self._listeners.pop(boundary, None)

    def _missed(self, boundary: str, partition: int, after: str) -> Sequence[_Kept] | None:
        """Return the kept events behind an id; None if some may be gone."""
        found = EVENT_ID.match(after)
        offsets = [int(one) for one in found[2].split("-")[1:]] if found else []
        if found is None or int(found[1]) != partition or len(offsets) != len(TOPICS):
            return None
        if any(offset < self._starts.get((topic, partition), 0) for topic, offset in enumerate(offsets)):
            return None
        mine = (one for one in self._kept if one.boundary == boundary)
        return [one for one in mine if one.offset >= offsets[one.topic]]

    def _keep(self, kept: _Kept) -> None:
        self._kept.append(kept)
        if len(self._kept) > self._max_kept:
            gone = self._kept.popleft()
            place = (gone.topic, gone.partition)
            self._starts[place] = max(self._starts.get(place, 0), gone.offset + 1)
        for queue in list(self._listeners.get(kept.boundary, ())):
            self._tell(queue, kept)

    def _tell(self, queue: asyncio.Queue[_Kept | None], kept: _Kept) -> None:
        if not queue.full():
            queue.put_nowait(kept)
            return
        while not queue.empty():
            queue.get_nowait()
        queue.put_nowait(None)
        self._listeners[kept.boundary].discard(queue)

    def _id(self, partition: int) -> str:
        return "-".join(map(str, (partition, *self._read_to.get(partition, [0] * len(TOPICS)))))
