"""Cursors of lists: opaque texts that say where the next page begins. Pure.

A cursor belongs to its request: it has a digest of everything in it that decides which items there are, and in which
order. It names nothing but a place in the list that it continues: a forged one opens nothing.
"""

import base64
import hashlib
from typing import Annotated, NamedTuple

from pydantic import BaseModel, Field, ValidationError

from schemas.failures import Rejected
from schemas.messages.lists import ListRequest

MAX_CURSOR_CHARS = 65_536
"""Characters of a cursor: those of a conversation's id and of a scope with many fields, escaped, are fewer."""

Integer = Annotated[int, Field(ge=-(2**62), le=2**62)]


class Position(NamedTuple):
    """The place of an item: microseconds since the epoch, and what orders items of the same time."""

    time_us: int
    key: str


class Beginning(NamedTuple):
    """What was there when paging began.

    Turns with an offset above `began` were written later. `changes` counts the writes to the columns until then, of
    turns and of items, and then of those that are not searchable.
    """

    began: int
    changes: tuple[int, ...]


class Cursor(BaseModel, frozen=True, strict=True, extra="forbid"):
    """The last item of a page, and what was there when paging began.

    `began` and `changes` are those of `Beginning`. `total` is the number of all items where counting them again would
    read every text, else None.
    """

    request: str
    began: Integer
    changes: Annotated[tuple[Integer, ...], Field(min_length=4, max_length=4)]
    time_us: Integer
    key: str
    total: Annotated[Integer, Field(ge=0)] | None = None

    @property
    def beginning(self) -> Beginning:
        """What was there."""
        return Beginning(self.began, self.changes)

    @property
    def position(self) -> Position:
        """The place of the last item."""
        return Position(self.time_us, self.key)


def request_digest(request: ListRequest) -> str:
    """Return the digest of all that decides which items a list has, and their order."""
    asked = request.model_dump_json(exclude={"limit", "cursor", "read_after"})
    return hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def encode_cursor(cursor: Cursor) -> str:
    """Return the cursor as text, safe in a URL."""
    return base64.urlsafe_b64encode(cursor.model_dump_json().encode()).decode().rstrip("=")


def decode_cursor(request: ListRequest) -> Cursor | None:
    """Return the request's cursor, None for the first page. Raises Rejected, `invalid_value`."""
    if request.cursor is None:
        return None
    cursor = _parsed(request.cursor)
    if cursor is None:
        raise Rejected("invalid_value", "this is no cursor; give `next` of the page before, or null", "cursor")
    if cursor.request != request_digest(request):
        message = "this cursor is of another request; repeat the request of the page before, or leave the cursor out"
        raise Rejected("invalid_value", message, "cursor")
    return cursor


def _parsed(text: str) -> Cursor | None:
    if not text or len(text) > MAX_CURSOR_CHARS:
        return None
    try:
        return Cursor.model_validate_json(base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True))
    except (ValueError, ValidationError):
        return None
