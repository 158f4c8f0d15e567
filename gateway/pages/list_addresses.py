"""Addresses of lists: filters in, fields of `list.v1` out; and paging forth and back by cursors. Pure."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, NamedTuple

from gateway.service.failures import Refused

EXTRACTED = "items"
"""The choice of all `EXTRACTED_TYPES`."""

EXTRACTED_TYPES = ("semantic", "procedural", "document", "state_object")

UNCHANGED = ("role", "conversation_id", "embedding_status", "order", "cursor")
"""Parameters that are fields of the same name and value."""

TEXT = "text"
"""The parameter for `contains`: a field of that name would hide the method of its form from scripts."""

DEFAULT_LIMIT = 50

LIMITS = (25, 50, 100, 200, 500)
"""Choices of rows of a page; 500 is the contract's limit, and that of a selection."""

MAX_TRAIL = 12
"""Pages that an address leads back over: a cursor has some 260 characters."""

FIRST = "0"
"""Stands in a trail for the first page, which has no cursor."""


def list_fields(query: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a query. Days are of UTC, the last one included. Raises Refused."""
    fields: dict[str, Any] = {name: query[name] for name in UNCHANGED if query.get(name)}
    if text := query.get(TEXT):
        fields["contains"] = text
    if types := query.get("types"):
        fields["types"] = list(EXTRACTED_TYPES) if types == EXTRACTED else [types]
    if since := query.get("since"):
        fields["since"] = _beginning_of(since, 0)
    if until := query.get("until"):
        fields["until"] = _beginning_of(until, 1)
    if query.get("include_superseded"):
        fields["include_superseded"] = True
    return {**fields, "limit": _limit(query.get("limit"))}


def is_filtered(query: Mapping[str, str]) -> bool:
    """True if a query has a filter besides the pickers of the head."""
    return any(
        query.get(name) for name in ("role", "conversation_id", "embedding_status", TEXT, "types", "since", "until")
    )


class Pager(NamedTuple):
    """Changes of the address for each link; None if there is no such page."""

    first: dict[str, Any] | None
    previous: dict[str, Any] | None
    next: dict[str, Any] | None


def pager_of(query: Mapping[str, str], next_cursor: str | None) -> Pager:
    """Return the links of a page from its query and the cursor of the next page.

    Lists answer with the next page's cursor only, so the address carries the cursors of the pages before.
    """
    cursor = query.get("cursor") or None
    trail = [previous for previous in query.get("trail", "").split(".") if previous]
    longer = [*trail, cursor or FIRST][-MAX_TRAIL:]
    return Pager(
        None if cursor is None else _change(None, []),
        _change(trail[-1], trail[:-1]) if cursor is not None and trail else None,
        None if next_cursor is None else _change(next_cursor, longer),
    )


def _beginning_of(text: str, days_later: int) -> str:
    """Return the beginning of a day as a time; other texts stay as they are, such as a time in another page's link."""
    try:
        day = date.fromisoformat(text) + timedelta(days=days_later)
    except (ValueError, OverflowError):
        return text
    return f"{day.isoformat()}T00:00:00Z"


def _limit(text: str | None) -> int:
    if not text:
        return DEFAULT_LIMIT
    if not text.isdecimal() or not 1 <= int(text[:4]) <= LIMITS[-1]:
        raise Refused("invalid_value", f"a page has 1 to {LIMITS[-1]} rows", "limit")
    return int(text)


def _change(cursor: str | None, trail: list[str]) -> dict[str, Any]:
    return {"cursor": None if cursor == FIRST else cursor, "trail": ".".join(trail) or None}
