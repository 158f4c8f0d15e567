"""A queue that serves its keys round robin, for work that many users share.

Enters: items by key, such as requests by boundary. Leaves: the oldest item of each key in turn. Guaranteed: an item
waits for at most one item of each other key per item of its own key ahead of it; all operations take constant time.
"""

from collections import OrderedDict, deque
from typing import Generic, TypeVar

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """Items by key, first in first out within a key."""

    def __init__(self) -> None:
        self._by_key: OrderedDict[str, deque[Item]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def put(self, key: str, item: Item) -> None:
        """Append an item to its key's line; a new key is served last."""
        self._by_key.setdefault(key, deque()).append(item)
        self._length += 1

    def get(self) -> Item:
        """Remove and return the next item, and move its key to the end. Raises IndexError if the queue is empty."""
        if not self._by_key:
            raise IndexError("the queue is empty")
        key, line = self._by_key.popitem(last=False)
        item = line.popleft()
        if line:
            self._by_key[key] = line
        self._length -= 1
        return item
