"""Kafka records, read and to be written, with keys, values and headers as raw bytes."""

import re
from dataclasses import dataclass

from modestream_client.records import Headers, Record

__all__ = ["Headers", "Outgoing", "Record"]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One record to write. Default partition: that of the key; default timestamp: the time of writing."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None
    is_unhurried: bool = False
    """True if no caller waits for it: more such records go in one request."""


REQUEST_ID_HEADER = "request_id"
"""The record header with the id; events that follow from the record have it too."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")


def is_request_id(text: str) -> bool:
    r"""True for an id that is accepted from a caller: it can neither forge lines of a log nor fill it."""
    return _REQUEST_ID.match(text) is not None
