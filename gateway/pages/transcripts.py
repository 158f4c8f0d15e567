"""The turns of a conversation as they were said, a page at a time, or from the place of one turn."""

from typing import Any, NamedTuple

from modestream_client.operations import LIST_MEMORIES

from gateway.pages.paging import Pager, pager_of
from gateway.pages.view import View
from gateway.service.service import MemoryService
from gateway.service.wire import Json

TURNS_OF_PAGE = 100
"""Turns of one page."""

TURNS_BEFORE = 10
"""Turns that are shown before the place that an address names."""


class Transcript(NamedTuple):
    """`turns` oldest first; `total` counts those that the chosen mode has. `earlier`: where an earlier part begins."""

    turns: list[Json]
    total: int
    pager: Pager
    earlier: str | None


async def transcript_of(service: MemoryService, view: View, conversation_id: str) -> Transcript:
    """Load a page of a conversation; the parameter `at` is a time at which it begins. Raises Refused."""
    fields: dict[str, Any] = {
        "conversation_id": conversation_id,
        "mode": view.mode or "*",
        "include_superseded": True,
        "limit": TURNS_OF_PAGE,
        "order": "oldest",
    }
    at, cursor = view.query.get("at") or None, view.query.get("cursor") or None
    if at is None:
        listed = await _turns(service, view, {**fields, **({"cursor": cursor} if cursor else {})})
        return Transcript(listed["items"], listed["total"], pager_of(view.query, listed["next"]), None)
    from_there = await _turns(service, view, {**fields, "since": at, **({"cursor": cursor} if cursor else {})})
    pager = pager_of(view.query, from_there["next"])
    if cursor is not None:
        return Transcript(from_there["items"], from_there["total"], pager, None)
    before = await _turns(service, view, {**fields, "until": at, "order": "newest", "limit": TURNS_BEFORE})
    turns = [*reversed(before["items"]), *from_there["items"]]
    earlier = before["items"][-1]["occurred_at"] if before["next"] is not None else None
    return Transcript(turns, from_there["total"] + before["total"], pager, earlier)


async def _turns(service: MemoryService, view: View, fields: dict[str, Any]) -> Json:
    return await service.operations.run(LIST_MEMORIES, view.call(), view.selector, fields)
