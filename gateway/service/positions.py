"""`read_after`: the place of a turn as `"<partition>:<offset>"`, so that any gateway can read after it."""

import re
from typing import Any

from modestream_client.requests import Written

from gateway.service.calls import Call
from gateway.service.failures import Refused
from gateway.service.requests import CheckedRequests

POSITION = re.compile(r"(\d{1,10}):(\d{1,18})\Z")


def position_of(written: Written) -> str:
    """Return the place of a written turn.

    >>> position_of(Written(2, 17))
    '2:17'
    """
    return f"{written.partition}:{written.offset}"


async def offset_of(call: Call, requests: CheckedRequests, position: object) -> int | None:
    """Return the offset to read after, None for none. Raises Refused if it is no place in the user's partition."""
    if position is None:
        return None
    found = POSITION.match(position) if isinstance(position, str) else None
    if found is None:
        raise _refused("read_after is what a write answered, such as '2:17'")
    if int(found[1]) != await requests.partition_of(call.user_id):
        raise _refused("read_after is a place of another user's writes")
    return int(found[2])


async def with_offset(call: Call, requests: CheckedRequests, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with `read_after` as the service takes it."""
    return {**fields, "read_after": await offset_of(call, requests, fields.get("read_after"))}


def _refused(message: str) -> Refused:
    return Refused("invalid_value", message, "read_after")
