"""Filters of an address in, fields of `list.v1` out. Pure; what is no value of a field is refused by the service."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from gateway.service.failures import Refused

EXTRACTED = "items"
"""The choice of all types that are extracted from turns."""

EXTRACTED_TYPES = ("semantic", "procedural", "document", "state_object")

PASSED_ON = ("role", "conversation_id", "embedding_status", "order", "cursor")
"""Parameters that are fields as they are."""

TEXT = "text"
"""The parameter for `contains`: a field of that name would hide the method of its form from scripts."""

DEFAULT_LIMIT = 50

LIMITS = (25, 50, 100, 200, 500)
"""Rows of a page to choose from; 500 is the contract's limit, and that of a selection."""


def list_fields(query: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields that an address asks for. Days are those of UTC, the last one included. Raises Refused."""
    fields: dict[str, Any] = {name: query[name] for name in PASSED_ON if query.get(name)}
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
    """True if an address narrows the list by more than what the header picks."""
    return any(
        query.get(name) for name in ("role", "conversation_id", "embedding_status", TEXT, "types", "since", "until")
    )


def _beginning_of(text: str, days_later: int) -> str:
    """Return the beginning of a day as a time; another text stays, such as a whole time of another page's link."""
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
