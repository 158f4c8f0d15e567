"""Lists with a text filter, searched in parts of the user's time, the latest first.

A list reads all texts that its other filters admit, where the lexical index excludes too few: of 100,000 memories that
takes longer than a person waits, and nearly always the first page is full long before.
"""

import time
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from modestream_client.hits import ListResult
from modestream_client.operations import Operation

from gateway.pages.pages import Pages, boundary_of, or_too_slow
from gateway.pages.requests import View
from gateway.service.calls import Json
from schemas.moments import iso

MANY = 5_000
"""Memories of a user from which texts are searched in parts: fewer are read in a fifth of a second."""

FIRST_SEARCHED = 2_000
"""Memories that the first part has, about: a page of conversations that all have the text."""

GROWTH = 10
"""How many times as much the next part reaches back."""

SEARCH_S = 4.0
"""Seconds from which no further part is searched."""


async def newest_with_text(pages: Pages, view: View, operation: Operation[ListResult], fields: Json) -> Json:
    """Return a list; one of a text newest first over all time in parts, until a page is full or the time is up.

    The list then has no `next`, its total is that of the page, and `searched_to` is from where a link goes on, unless
    all was searched. Without a total it took too long. Raises Refused.
    """
    is_whole_time = "contains" in fields and not {"since", "cursor"} & set(fields) and fields.get("order") != "oldest"
    boundary = await boundary_of(pages.service, view) if is_whole_time else None
    if boundary is None or boundary["memories"] <= MANY:
        return await or_too_slow(pages.service.operations.run(operation, view.call(), view.read_scope, fields))
    until, items, end = fields.get("until"), list[Json](), time.monotonic() + SEARCH_S
    last = datetime.fromisoformat(boundary["last"])
    last = last if until is None else min(last, datetime.fromisoformat(until))
    span = last - datetime.fromisoformat(boundary["first"])
    share = FIRST_SEARCHED / boundary["memories"]
    while True:
        since = None if share >= 1 else iso(last - share * span)
        part = {**fields, "facets": None, "limit": fields["limit"] - len(items), "until": until, "since": since}
        asked = {name: value for name, value in part.items() if value is not None}
        call = view.call(max(1.0, end - time.monotonic()))
        listed = await or_too_slow(pages.service.operations.run(operation, call, view.read_scope, asked))
        items = joined(items, listed["items"])
        if listed["total"] is None:
            return {"items": items, "next": None, "total": len(items), "searched_to": until or iso(last)}
        if listed["next"] is not None or (len(items) >= fields["limit"] and since is not None):
            # The same instant again: several memories may have it.
            moment = str(items[-1]["last"] if "turns" in items[-1] else items[-1]["occurred_at"])
            oldest = datetime.fromisoformat(moment) + timedelta(milliseconds=1)
            return {"items": items, "next": None, "total": len(items), "searched_to": iso(oldest)}
        if since is None:
            return {"items": items, "next": None, "total": len(items)}
        if time.monotonic() > end:
            return {"items": items, "next": None, "total": len(items), "searched_to": since}
        until, share = since, share * GROWTH


def joined(newer: list[Json], older: list[Json]) -> list[Json]:
    """Return the items of two parts; a conversation that has turns in both is one item, where its last turn is."""
    conversations = {_key_of(item): item for item in newer if "turns" in item}
    items = list(newer)
    for item in older:
        same: Any = conversations.get(_key_of(item)) if "turns" in item else None
        if same is None:
            items.append(item)
            continue
        same |= {
            "turns": same["turns"] + item["turns"],
            "first": item["first"],
            "speakers": sorted({*same["speakers"], *item["speakers"]}),
            "modes": dict(Counter(same["modes"]) + Counter(item["modes"])),
        }
    return items


def _key_of(conversation: Json) -> tuple[str, str]:
    return conversation["conversation_id"], str(conversation["scope"])
