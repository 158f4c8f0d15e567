"""A queue that serves its keys round robin, for work that many users share.

Enters: items by key, such as requests by boundary. Leaves: the oldest item of each key in turn. Guaranteed: an item
waits for at most one item of each other key per item of its own key ahead of it; all operations take constant time.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from schemas.messages.records import Record

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class FairShare:
    """How users take turns at an agent: records of one key begin in order, and those of `at_once` keys together."""

    key_of: Callable[[Record], str]
    """Called for each record as it is read, in order."""
    at_once: int = 1


class FairQueue(Generic[Item]):
    """Items by key, first in first out within a key."""

    def __init__(self) -> None:
        self._ready: OrderedDict[str, deque[Item]] = OrderedDict()
        self._held: dict[str, deque[Item]] = {}
        self._length = 0

    def __len__(self) -> int:
        """Count the items, those of held keys included."""
        return self._length

    @property
    def has_ready(self) -> bool:
        """True if a key that is not held has an item."""
        return bool(self._ready)

    def put(self, key: str, item: Item) -> None:
        """Append an item to its key's line; a new key is served last."""
        line = self._held.get(key)
        (self._ready.setdefault(key, deque()) if line is None else line).append(item)
        self._length += 1

    def get(self) -> Item:
        """Remove and return the next item, and move its key to the end. Raises IndexError if none is ready."""
        key, item = self.hold()
        self.release(key)
        return item

    def hold(self) -> tuple[str, Item]:
        """Remove and return the next item with its key, whose other items wait for `release`.

        Raises IndexError if none is ready.
        """
        if not self._ready:
            raise IndexError("no item is ready")
        key, line = self._ready.popitem(last=False)
        self._held[key] = line
        self._length -= 1
        return key, line.popleft()

    def release(self, key: str) -> None:
        """Let the next item of a held key follow, behind those of other keys."""
        if line := self._held.pop(key):
            self._ready[key] = line

    def clear(self) -> None:
        """Remove all items; held keys stay held."""
        self._ready.clear()
        for line in self._held.values():
            line.clear()
        self._length = 0
