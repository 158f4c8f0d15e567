"""Answer list requests: memories, conversations and projects of one boundary, page by page, without a question.

Columns in memory decide which memories a list has, and their order; of records only those of the page are read, and
where texts are searched, excerpts of all that the columns admit, in slices. Every page shows what is there now: what
was forgotten, replaced or superseded meanwhile is not listed; what was written since paging began changes no page.
"""

import asyncio
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, Protocol

import numpy as np
from modestream_client.hits import ListedConversation, ListedMemory, ListResult

from agents.ports.indexes import LexicalIndex
from agents.ports.stores import Memories, Modes
from agents.rules.answer.hits import SearchWarning, memory_fields
from agents.rules.answer.list_filters import ListedGroups, ListFilter, Selected, count_facets, plan_list
from agents.rules.answer.list_pages import (
    Beginning,
    Cursor,
    ListedOrder,
    OrderedItem,
    Position,
    Window,
    decode_cursor,
    encode_cursor,
    request_digest,
)
from agents.rules.index.columns import MISSING
from agents.rules.index.memory_columns import filtered_reader
from agents.rules.memory.resources import with_turn_metadata
from agents.rules.query.plans import where_of
from schemas.messages.retrieval import ListRequest
from schemas.moments import microseconds_of
from schemas.state.memories import Memory, ReadMemory, index_names, turn_index_names, unsearchable_index_name

MAX_PAGE_BYTES = 8 * 1024 * 1024
"""Bytes of a page's items as JSON: half of a reply. A longer page ends early, after one item at least."""

SLICE_S = 0.004
"""Seconds of work between two pauses, in which other requests run. A thread would hold the interpreter as long."""


TITLE_TURNS = 3
"""Turns in which a title is looked for: an assistant or a system may speak first."""

MAX_TITLE_CHARS = 60


class EventLoopSlices:
    """Cuts long work into slices."""

    def __init__(self) -> None:
        self._end = time.perf_counter() + SLICE_S

    @property
    def is_over(self) -> bool:
        """True if the slice is used up."""
        return time.perf_counter() > self._end

    async def pause(self) -> None:
        """Let other requests run, and begin the next slice."""
        await asyncio.sleep(0)
        self._end = time.perf_counter() + SLICE_S


class BuiltItem(NamedTuple):
    """An item of a page, its exact position, and its bytes as JSON."""

    position: Position
    item: Any
    size: int


class ItemReader(Protocol):
    def exact(self, item: OrderedItem) -> Position:
        """Return the exact position of an item."""

    def build(self, item: OrderedItem) -> BuiltItem | None:
        """Return an item as a page shows it; None if the list does not have it any more."""


async def read_page(
    order: ListedOrder, after: Position | None, limit: int, reader: ItemReader, slices: EventLoopSlices
) -> tuple[list[Any], Position | None]:
    """Return at most `limit` items after a position, and the position of the last one if others follow it."""
    page: list[Any] = []
    index, size, behind, last = order.start(after), 0, after, after
    while index < len(order):
        window = order.window(index, max(1, limit - len(page)), behind)
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
        index, behind = window.end, window.reached or behind
    return page, None


async def _sorted(
    window: Window, order: ListedOrder, behind: Position | None, reader: ItemReader, slices: EventLoopSlices
) -> list[tuple[Position, OrderedItem]]:
    """Return the items of a window with their positions, which are exact where that decides."""
    inexact_ms, positioned = window.inexact_ms(behind), []
    for item in window.items:
        positioned.append((reader.exact(item) if item.time_ms in inexact_ms else item.position, item))
        if slices.is_over:
            await slices.pause()
    return sorted(positioned, reverse=order.newest)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class List:
    """List requests in, pages out. Writes nothing."""

    words: LexicalIndex
    memories: Memories
    modes: Modes

    async def answer(self, request: ListRequest) -> tuple[ListResult, list[SearchWarning]]:
        """Return a page, without warnings. Raises Rejected for an undeclared mode and for a wrong cursor."""
        cursor, boundary = decode_cursor(request), request.scope.boundary
        asked = plan_list(request, self.modes.get(boundary), self.words.memory_columns(boundary))
        beginning = cursor.beginning if cursor else self._begin(asked)
        slices = EventLoopSlices()
        if request.what == "memories":
            return await self._memories_of(asked, beginning, cursor, slices), []
        return await self._groups_of(asked, beginning, cursor, slices), []

    def _begin(self, asked: ListFilter) -> Beginning:
        boundary, listed = asked.request.scope.boundary, {part.where.boundary for part in asked.parts}
        turns = [self.words.memory_columns(name).columns for name in turn_index_names(boundary)]
        began = max(int(columns.source[columns.conversations != MISSING].max(initial=-1)) for columns in turns)
        counted = (self.words.memory_columns(name).changes if name in listed else 0 for name in _names(boundary))
        return Beginning(began, tuple(counted))

    def _selected(self, asked: ListFilter, beginning: Beginning) -> list[Selected]:
        status = asked.request.embedding_status or "ready"
        with_status = partial(self.words.numbers_with_status, status=status)
        selected = []
        for part in asked.parts:
            columns = self.words.memory_columns(part.where.boundary)
            numbers = asked.numbers(part, columns, with_status, beginning.began)
            if asked.fragments:
                containing = self.words.numbers_containing(part.where.boundary, asked.fragments)
                numbers = numbers if containing is None else np.intersect1d(numbers, containing, assume_unique=True)
            part_number = _names(asked.request.scope.boundary).index(part.where.boundary)
            selected.append(Selected(columns, numbers, columns.times_at(numbers, beginning.changes[part_number])))
        return selected

    async def _memories_of(
        self, asked: ListFilter, beginning: Beginning, cursor: Cursor | None, slices: EventLoopSlices
    ) -> ListResult:
        request, after = asked.request, cursor.position if cursor else None
        selected, total = self._selected(asked, beginning), None
        numbers = np.concatenate([part.numbers for part in selected])
        starts = np.cumsum([0, *(len(part.numbers) for part in selected)])[:-1].tolist()

        def id_at(index: int) -> str:
            return selected[bisect_right(starts, index) - 1].columns.id_of[int(numbers[index])]

        times = np.concatenate([part.times_ms for part in selected])
        order = ListedOrder.of(times, id_at, newest=request.order == "newest")
        if request.reads_texts:
            total = cursor.total if cursor else None
            order = await self._with_texts(asked, order, after, slices, count_all=total is None)
            total = len(order) if total is None else total
        facets = None
        if request.facets and cursor is None:
            ends = [*starts[1:], len(numbers)]
            shown = np.sort(order.indexes)
            listed = [
                part._replace(numbers=numbers[shown[(shown >= start) & (shown < end)]])
                for part, start, end in zip(selected, starts, ends, strict=True)
            ]
            facets = count_facets(listed, [part.shown_as for part in asked.parts])
        matching = filtered_reader(self.memories.get, self.words.memory_columns, where_of(request))
        items, last = await read_page(order, after, request.limit, _MemoryReader(matching, asked), slices)
        return ListResult(
            items=items,
            next=_next(request, beginning, last, total),
            total=len(order) if total is None else total,
            facets=facets,
        )

    async def _with_texts(
        self, asked: ListFilter, order: ListedOrder, after: Position | None, slices: EventLoopSlices, *, count_all: bool
    ) -> ListedOrder:
        """Return the items whose texts match: all of them, or without `count_all` those that the page needs."""
        first, wanted = 0 if count_all else order.start(after), asked.request.limit + 1
        matching: list[int] = []
        for index, key in enumerate(order.keys(first), first):
            if slices.is_over:
                await slices.pause()
            if not count_all and index % wanted == 0 and order.suffices(matching, index, after, wanted):
                break
            if self._has_text(asked, key):
                matching.append(index)
        return order.restricted_to(matching)

    def _has_text(self, asked: ListFilter, memory_id: str) -> bool:
        # The columns have decided the rest: the whole record takes three times as long to read.
        excerpt = self.memories.excerpt(memory_id)
        return excerpt is not None and asked.has_text(excerpt)

    async def _groups_of(
        self, asked: ListFilter, beginning: Beginning, cursor: Cursor | None, slices: EventLoopSlices
    ) -> ListResult:
        request = asked.request
        selected = self._selected(asked, beginning)
        if request.reads_texts:
            matching = set()
            for memory_id in _ids(selected):
                if slices.is_over:
                    await slices.pause()
                if self._has_text(asked, memory_id):
                    matching.add(memory_id)
            # Columns may have changed meanwhile: they are read again, and nothing is awaited until they are grouped.
            current, selected = self._selected(asked, beginning), []
            for part in current:
                at = np.array([memory_id in matching for memory_id in _ids([part])], np.bool_)
                selected.append(Selected(part.columns, part.numbers[at], part.times_ms[at]))
        turns = self.words.memory_columns(request.scope.boundary)
        groups = ListedGroups(turns, selected, by_conversation=request.what == "conversations")
        order = ListedOrder.of(groups.last_ms, groups.key_of, newest=request.order == "newest")
        after = cursor.position if cursor else None
        items, last = await read_page(order, after, request.limit, _GroupReader(groups, self.memories.get), slices)
        return ListResult(items=items, next=_next(request, beginning, last), total=len(order))


def _names(boundary: str) -> tuple[str, ...]:
    """Return the index names in the order of `Beginning.changes`."""
    searched = index_names(boundary)
    return (*searched, *map(unsearchable_index_name, searched))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _MemoryReader:
    read: ReadMemory
    asked: ListFilter

    def exact(self, item: OrderedItem) -> Position:
        memory = self.read(item.key)
        return item.position if memory is None else _exact(item, memory)

    def build(self, item: OrderedItem) -> BuiltItem | None:
        memory = self.read(item.key)
        part = None if memory is None else self.asked.part_of(memory)
        if memory is None or part is None:
            return None
        listed = ListedMemory(
            **memory_fields(with_turn_metadata(memory, self.read), part.shown_as, self.asked.request.as_of),
            importance=memory.importance,
            resources=tuple(resource.published().model_dump() for resource in memory.resources),
            superseded_by=memory.superseded_by,
            searchable=memory.visibility.searchable,
        )
        return BuiltItem(_exact(item, memory), listed, len(listed.model_dump_json()))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _GroupReader:
    groups: ListedGroups
    read: ReadMemory

    def exact(self, item: OrderedItem) -> Position:
        return item.position

    def build(self, item: OrderedItem) -> BuiltItem:
        group = self.groups.build(item.number)
        if isinstance(group, ListedConversation):
            first = map(self.read, self.groups.first_turns(item.number, TITLE_TURNS))
            group.title = title_of([turn for turn in first if turn is not None])
        return BuiltItem(item.position, group, 0)


def title_of(turns: Sequence[Memory]) -> str | None:
    """Return the title of a conversation from its first turns: an import's, else the first words of a user.

    Signs of Markdown before the words are left out.
    """
    for turn in turns:
        if isinstance(title := turn.metadata.get("title"), str) and title.strip():
            return _first_words(title)
    first = next(chain((turn for turn in turns if turn.role == "user"), turns), None)
    return None if first is None else _first_words(first.text) or None


def _first_words(text: str) -> str:
    line = " ".join(text[: 4 * MAX_TITLE_CHARS].split()).lstrip("#*->` ")
    if len(line) <= MAX_TITLE_CHARS:
        return line
    words, _, _ = line[:MAX_TITLE_CHARS].rpartition(" ")
    return f"{words or line[:MAX_TITLE_CHARS]} …"


def _exact(item: OrderedItem, memory: Memory) -> Position:
    """Return the position by the record's time, unless the list orders it by the time that it had before."""
    if memory.occurred_ms != item.time_ms:
        return item.position
    return Position(microseconds_of(memory.occurred_at), item.key)


def _ids(selected: Sequence[Selected]) -> Iterator[str]:
    return (part.columns.id_of[number] for part in selected for number in part.numbers.tolist())


def _next(request: ListRequest, beginning: Beginning, last: Position | None, total: int | None = None) -> str | None:
    """Return the cursor behind the last item of a page; None if nothing follows."""
    if last is None:
        return None
    cursor = Cursor(
        request=request_digest(request),
        began=beginning.began,
        changes=beginning.changes,
        time_us=last.time_us,
        key=last.key,
        total=total,
    )
    return encode_cursor(cursor)
