"""`read_after`: the place of a turn as `"<partition>:<offset>"`, so that any gateway can read after it."""

from typing import Any

from modestream_client.failures import MemoryServiceError
from modestream_client.records import Written

from gateway.service.calls import Call
from gateway.service.failures import Refused
from gateway.service.requests import CheckedRequests


async def offset_of(call: Call, requests: CheckedRequests, position: object) -> int | None:
    """Return the offset to read after, None for none. Raises Refused if it is no place in the user's partition."""
    if position is None:
        return None
    try:
        place = Written.parse(str(position))
    except MemoryServiceError as error:
        raise _refused(error.message) from None
    if place.partition != await requests.partition_of(call.user_id):
        raise _refused("read_after is a place of another user's writes")
    return place.offset


async def with_offset(call: Call, requests: CheckedRequests, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with `read_after` as the service takes it."""
    return {**fields, "read_after": await offset_of(call, requests, fields.get("read_after"))}


def _refused(message: str) -> Refused:
    return Refused("invalid_value", message, "read_after")
