"""Paging forth and back by cursors: lists answer the next page alone, so an address keeps the way to its page. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

MAX_TRAIL = 12
"""Pages that an address leads back over: a cursor has some 260 characters."""

FIRST = "0"
"""Stands for the first page, which has no cursor."""


class Pager(NamedTuple):
    """Changes of the address for each link; None where there is no such page. A link back may end at the first page."""

    first: dict[str, Any] | None
    previous: dict[str, Any] | None
    next: dict[str, Any] | None


def pager_of(query: Mapping[str, str], next_cursor: str | None) -> Pager:
    """Return the links of a page by its query and the cursor of the page behind it."""
    cursor = query.get("cursor") or None
    trail = [one for one in query.get("trail", "").split(".") if one]
    longer = [*trail, cursor or FIRST][-MAX_TRAIL:]
    return Pager(
        None if cursor is None else _change(None, []),
        _change(trail[-1], trail[:-1]) if cursor is not None and trail else None,
        None if next_cursor is None else _change(next_cursor, longer),
    )


def _change(cursor: str | None, trail: list[str]) -> dict[str, Any]:
    return {"cursor": None if cursor == FIRST else cursor, "trail": ".".join(trail) or None}
