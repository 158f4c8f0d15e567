"""Opaque cursors of the gateway's own lists: where a page ended, and of which list. Pure."""

import base64
import hashlib
import json

import orjson

from gateway.service.failures import Refused


def cursor_of(place: str, *filters: str) -> str:
    """Return the cursor of the page behind `place`."""
    text = json.dumps([place, _digest(filters)], ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def place_of(cursor: str | None, *filters: str) -> str | None:
    """Return the place of a cursor. Raises Refused, `invalid_value`, if it is none, or one of another list.

    >>> place_of(cursor_of("u1", "prefix"), "prefix")
    'u1'
    """
    if cursor is None:
        return None
    try:
        place, digest = orjson.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (ValueError, TypeError):
        place, digest = None, None
    if not isinstance(place, str) or digest != _digest(filters):
        raise Refused("invalid_value", "this is no cursor of this list: take `next` of its last page", "cursor")
    return place


def _digest(filters: tuple[str, ...]) -> str:
    return hashlib.sha256(json.dumps(filters).encode()).hexdigest()[:12]
