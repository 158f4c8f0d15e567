"""Users in turn: a queue that serves its keys round robin, and turns at work that only some may do at a time.

Enters: items by key, such as requests by boundary. Leaves: the oldest item of each key in turn. Guaranteed: an item
waits for at most one item of each other key per item of its own key ahead of it; all operations take constant time.
Keys whose next item is large stand in a line of their own, which may be left out: large items hold up no others.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from schemas.messages.records import Record

MAX_TURN_S = 0.5
"""Slot timeout in seconds: a longer request is assumed stuck on a store and gives its slot back."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class FairShare:
    """How users take turns at an agent: records of one key begin in order, and those of `at_once` keys together."""

    key_of: Callable[[Record], str]
    """Called for each record as it is read, in order."""
    at_once: int = 1
    large_bytes: int | None = None
    """A longer value is large: one large record begins at a time, and records that are not large never wait for it."""

    def is_large(self, record: Record) -> bool:
        return self.large_bytes is not None and len(record.value or b"") > self.large_bytes


class FairQueue(Generic[Item]):
    """Items by key, first in first out within a key."""

    def __init__(self, is_large: Callable[[Item], bool] = lambda _: False) -> None:
        self._is_large = is_large
        self._lines: dict[str, deque[Item]] = {}
        self._ready: tuple[OrderedDict[str, int], OrderedDict[str, int]] = OrderedDict(), OrderedDict()
        """Keys with the number of their turn, by whether their next item is large."""
        self._held: set[str] = set()
        self._turns = 0
        self._length = 0

    def __len__(self) -> int:
        """Count the items, those of held keys included."""
        return self._length

    def has_ready(self, *, large: bool = True) -> bool:
        """True if a key that is not held has an item; `large`: also if that is a large one."""
        return bool(self._ready[False] or (large and self._ready[True]))

    def is_known(self, key: str) -> bool:
        """True if the key has items, or is held."""
        return key in self._lines or key in self._held

    def put(self, key: str, item: Item) -> None:
        """Append an item to its key's line; a new key is served last."""
        line = self._lines.setdefault(key, deque())
        line.append(item)
        self._length += 1
        if len(line) == 1 and key not in self._held:
            self._stand_last(key)

    def get(self) -> Item:
        """Remove and return the next item, and move its key to the end. Raises IndexError if none is ready."""
        key, item = self.hold()
        self.release(key)
        return item

    def hold(self, *, large: bool = True) -> tuple[str, Item]:
        """Remove and return the next item with its key, whose other items wait for `release`.

        Without `large`, the next one that is not large. Raises IndexError if none is ready.
        """
        lines = [line for line in (self._ready[False], self._ready[True] if large else None) if line]
        if not lines:
            raise IndexError("no item is ready")
        key, _ = min(lines, key=lambda line: next(iter(line.values()))).popitem(last=False)
        self._held.add(key)
        self._length -= 1
        return key, self._lines[key].popleft()

    def release(self, key: str) -> None:
        """Let the next item of a held key follow, behind those of other keys."""
        self._held.remove(key)
        if self._lines.get(key):
            self._stand_last(key)
        else:
            self._lines.pop(key, None)

    def clear(self) -> None:
        """Remove all items; held keys stay held."""
        self._lines.clear()
        for line in self._ready:
            line.clear()
        self._length = 0

    def _stand_last(self, key: str) -> None:
        self._turns += 1
        self._ready[self._is_large(self._lines[key][0])][key] = self._turns


class FairTurns:
    """Turns of users at something that only `at_once` of them may have; within a user in the order of the calls.

    A user may have fewer turns than are free: of eight, one user has four, a second one two, two more one each. This is
    the threshold of Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches" (1998).
    """

    def __init__(self, at_once: int, max_turn_s: float = MAX_TURN_S) -> None:
        """A turn ends `max_turn_s` after it began, even if its work goes on."""
        self._free = at_once
        self._max_turn_s = max_turn_s
        self._turns: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """The calls of each user; the one served last is last."""

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """Wait until it is this key's turn; it ends with the block, or when it has taken too long."""
        allowed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(allowed)
        self._serve()
        try:
            await allowed
        except asyncio.CancelledError:
            if allowed.done() and not allowed.cancelled():
                self._end(key)
            raise
        ending = asyncio.get_running_loop().call_later(self._max_turn_s, self._end, key)
        try:
            yield
        finally:
            if ending.when() > asyncio.get_running_loop().time():
                ending.cancel()
                self._end(key)

    def _end(self, key: str) -> None:
        self._free += 1
        self._turns[key] -= 1
        if not self._turns[key]:
            del self._turns[key]
        self._serve()

    def _serve(self) -> None:
        while (key := next((key for key in self._waiting if self._turns[key] < self._free), None)) is not None:
            allowed = self._waiting[key].popleft()
            self._waiting.move_to_end(key)
            if not self._waiting[key]:
                del self._waiting[key]
            if not allowed.done():
                self._free -= 1
                self._turns[key] += 1
                allowed.set_result(None)
