"""The order of a list, its pages and their cursors. Pure.

Items are ordered by time and, within the same time, by a key; the newest first is the exact reverse of the oldest
first. Columns have milliseconds: items of the same millisecond are returned together, to be ordered by their records.

A cursor is opaque and belongs to its request: it has a digest of everything that decides the items and their order. It
only names a position in that list: a forged one opens nothing.
"""

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from agents.rules.index.columns import IntArray
from schemas.failures import Rejected
from schemas.messages.retrieval import ListRequest

MAX_CURSOR_CHARS = 65_536
"""Maximum characters of a cursor: those of a conversation's id and of a scope with many fields, escaped, are fewer."""

Integer = Annotated[int, Field(ge=-(2**62), le=2**62)]


class Position(NamedTuple):
    """The position of an item: microseconds since the epoch, and the order of items of the same time."""

    time_us: int
    key: str


class Beginning(NamedTuple):
    """The state when paging began.

    Turns with an offset above `began` were written later. `changes` counts the writes to the columns until then, of
    turns and of items, and then of unsearchable ones.
    """

    began: int
    changes: tuple[int, ...]


class Cursor(BaseModel, frozen=True, strict=True, extra="forbid"):
    """The last item of a page, and the state when paging began.

    `began` and `changes` are those of `Beginning`. `total` is the number of all items if counting them again would read
    every text, else None.
    """

    request: str
    began: Integer
    changes: Annotated[tuple[Integer, ...], Field(min_length=4, max_length=4)]
    time_us: Integer
    key: str
    total: Annotated[Integer, Field(ge=0)] | None = None

    @property
    def beginning(self) -> Beginning:
        """The state when paging began."""
        return Beginning(self.began, self.changes)

    @property
    def position(self) -> Position:
        return Position(self.time_us, self.key)


def request_digest(request: ListRequest) -> str:
    """Return the digest of everything that decides the items of a list, and their order."""
    asked = request.model_dump_json(exclude={"limit", "cursor", "read_after", "facets"})
    return hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def encode_cursor(cursor: Cursor) -> str:
    """Return the cursor as text, safe in a URL."""
    return base64.urlsafe_b64encode(cursor.model_dump_json().encode()).decode().rstrip("=")


def decode_cursor(request: ListRequest) -> Cursor | None:
    """Return the request's cursor, None for the first page. Raises Rejected, `invalid_value`."""
    if request.cursor is None:
        return None
    text = request.cursor if len(request.cursor) <= MAX_CURSOR_CHARS else ""
    try:
        cursor = Cursor.model_validate_json(base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True))
    except (ValueError, ValidationError):
        message = "not a cursor; give `next` of the page before, or null"
        raise Rejected("invalid_value", message, "cursor") from None
    if cursor.request != request_digest(request):
        message = "this cursor is of another request; repeat the request of the page before, or leave the cursor out"
        raise Rejected("invalid_value", message, "cursor")
    return cursor


MAX_TIED_ITEMS = 1000
"""Maximum items of the same millisecond ordered by their exact times, which means reading them all: 10 ms. A larger
group got its time from an import or the like, and is ordered by key."""


class OrderedItem(NamedTuple):
    """An item by its number among all, with its key and its time in milliseconds since the epoch."""

    number: int
    key: str
    time_ms: int

    @property
    def position(self) -> Position:
        """The item's position as known from columns."""
        return Position(self.time_ms * 1000, self.key)


class Window(NamedTuple):
    """Consecutive items, unordered within a millisecond; the next window begins at the position `end`.

    `reached` is the position of the last one if the window ends within a millisecond. `by_key`: ignore exact times.
    """

    items: list[OrderedItem]
    end: int
    reached: Position | None = None
    by_key: bool = False

    def inexact_ms(self, behind: Position | None) -> set[int]:
        """Return the milliseconds in which exact times decide: of several items, or of one next to a position."""
        if self.by_key:
            return set()
        several = {item.time_ms for item, other in pairwise(self.items) if item.time_ms == other.time_ms}
        return several if behind is None else several | {behind.time_us // 1000}


@dataclass(frozen=True, slots=True)
class ListedOrder:
    """Items in the order of a list, shape (items,): `signed_ms` ascends, their times, negated for the newest first."""

    signed_ms: IntArray
    indexes: IntArray
    key_of: Callable[[int], str]
    newest: bool

    @classmethod
    def of(cls, times_ms: IntArray, key_of: Callable[[int], str], *, newest: bool) -> "ListedOrder":
        """Order items by time; `key_of` takes an index into the times."""
        signed = -times_ms if newest else times_ms
        indexes = np.argsort(signed, kind="stable")
        return cls(signed[indexes], indexes, key_of, newest)

    def __len__(self) -> int:
        return len(self.signed_ms)

    def restricted_to(self, places: Sequence[int]) -> "ListedOrder":
        """Return the order of the items at these places, which ascend."""
        at = np.array(places, np.int64)
        return ListedOrder(self.signed_ms[at], self.indexes[at], self.key_of, self.newest)

    def keys(self, first: int) -> Iterator[str]:
        """Yield the keys of all items from a place on."""
        return (self.key_of(index) for index in self.indexes[first:].tolist())

    def start(self, position: Position | None) -> int:
        """Return the first place that may follow a position: that of its millisecond."""
        return 0 if position is None else int(np.searchsorted(self.signed_ms, self._signed(position), "left"))

    def is_after(self, item: Position, position: Position | None) -> bool:
        return position is None or (item < position if self.newest else item > position)

    def suffices(self, places: Sequence[int], scanned: int, position: Position | None, wanted: int) -> bool:
        """True if these places, all that count before the place `scanned`, have `wanted` items after a position.

        The milliseconds of these items are complete.
        """
        times = self.signed_ms[np.array(places, np.int64)]
        last = wanted - 1 + (0 if position is None else int((times == self._signed(position)).sum()))
        return last < len(places) and bool(times[last] != self.signed_ms[scanned])

    def window(self, place: int, count: int, position: Position | None) -> Window:
        """Return `count` items or more from a place that begins a millisecond; fewer before a large one, or the end."""
        last = self.signed_ms[min(place + count, len(self)) - 1]
        first, end = (int(np.searchsorted(self.signed_ms, last, side)) for side in ("left", "right"))
        if end - first > MAX_TIED_ITEMS:
            if first == place:
                items = sorted(self._items(range(first, end)), key=lambda item: item.key, reverse=self.newest)
                items = [item for item in items if self.is_after(item.position, position)]
                if len(items) <= count:
                    return Window(items, end, by_key=True)
                return Window(items[:count], first, items[count - 1].position, by_key=True)
            end = first
        return Window(self._items(range(place, end)), end)

    def _items(self, places: Iterable[int]) -> list[OrderedItem]:
        sign = -1 if self.newest else 1
        return [
            OrderedItem(index, self.key_of(index), sign * int(self.signed_ms[place]))
            for place, index in ((place, int(self.indexes[place])) for place in places)
        ]

    def _signed(self, position: Position) -> int:
        time_ms = position.time_us // 1000
        return -time_ms if self.newest else time_ms
