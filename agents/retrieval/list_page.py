"""Read one page of a list: items in their exact order, built one by one, in bounded pieces on the event loop.

Enters: the order of all items, and a position. Leaves: the items behind it that fit the page, and the position of the
last one if others follow. What has gone meanwhile is left out, and the page goes on behind it.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from agents.rules.answer.list_pages import ListedOrder, OrderedItem, Position, Window

MAX_PAGE_BYTES = 8 * 1024 * 1024
"""Bytes of a page's items as JSON: half of a reply. A longer page ends early, after one item at least."""

SLICE_S = 0.004
"""Seconds of work between two pauses, in which other requests run. A thread would hold the interpreter as long."""


class EventLoopSlices:
    """Cuts long work into slices; `elapsed` counts seconds."""

    def __init__(self, elapsed: Callable[[], float] = time.perf_counter) -> None:
        self._elapsed = elapsed
        self._end = elapsed() + SLICE_S

    @property
    def is_over(self) -> bool:
        """True if the slice is used up."""
        return self._elapsed() > self._end

    async def pause(self) -> None:
        """Let other requests run, and begin the next slice."""
        await asyncio.sleep(0)
        self._end = self._elapsed() + SLICE_S


class BuiltItem(NamedTuple):
    """An item of a page, its exact position, and its bytes as JSON."""

    position: Position
    item: Any
    size: int


class ItemReader(Protocol):
    """Reads items of one kind."""

    def exact(self, item: OrderedItem) -> Position:
        """Return the exact position of an item."""

    def build(self, item: OrderedItem) -> BuiltItem | None:
        """Return an item as a page shows it; None if the list does not have it any more."""


async def read_page(
    order: ListedOrder, after: Position | None, limit: int, reader: ItemReader, slices: EventLoopSlices
) -> tuple[list[Any], Position | None]:
    """Return at most `limit` items after a position, and the position of the last one if others follow it."""
    page: list[Any] = []
    place, size, behind, last = order.start(after), 0, after, after
    while place < len(order):
        window = order.window(place, max(1, limit - len(page)), behind)
        for position, item in await _sorted(window, order, behind, reader, slices):
            if not order.is_after(position, behind):
                continue
            if page and (len(page) == limit or size > MAX_PAGE_BYTES):
                return page, last
            if (built := reader.build(item)) is not None:
                page.append(built.item)
                size += built.size
                last = item.position if window.by_key else built.position
            if slices.is_over:
                await slices.pause()
        place, behind = window.end, window.reached or behind
    return page, None


async def _sorted(
    window: Window, order: ListedOrder, behind: Position | None, reader: ItemReader, slices: EventLoopSlices
) -> list[tuple[Position, OrderedItem]]:
    """Return the items of a window with their positions, which are exact where that decides."""
    inexact_ms, found = window.inexact_ms(behind), []
    for item in window.items:
        found.append((reader.exact(item) if item.time_ms in inexact_ms else item.position, item))
        if slices.is_over:
            await slices.pause()
    return sorted(found, reverse=order.newest)
