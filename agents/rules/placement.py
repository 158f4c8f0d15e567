"""Records that arrive where they don't belong: how they are moved, once, and what they were before (CONTRACT §1)."""

import base64
import re

from schemas.records import Outgoing, Record

MOVED_FROM = "modestream_moved_from"
"""On a moved record: `partition:offset:key` of where it was written, the key in base64 or `-` for none."""


def is_moved(record: Record) -> bool:
    """Whether this record was moved here."""
    return record.header(MOVED_FROM) is not None


def moved(record: Record, key: bytes, partition: int) -> Outgoing:
    """The record as it is written where it belongs: value, headers and timestamp as they were."""
    was = "-" if record.key is None else base64.b64encode(record.key).decode()
    origin = f"{record.partition}:{record.offset}:{was}".encode()
    headers = (*record.headers, (MOVED_FROM, origin))
    return Outgoing(record.topic, key, record.value, headers, partition, record.timestamp_ms)


def original(record: Record) -> Record:
    """The record as its producer wrote it, moved or not."""
    origin = re.fullmatch(rb"(\d{1,9}):(\d{1,18}):(-|[A-Za-z0-9+/]*={0,2})", record.header(MOVED_FROM) or b"")
    if origin is None:
        return record
    partition, offset, key = origin.groups()
    return Record(
        topic=record.topic,
        partition=int(partition),
        offset=int(offset),
        timestamp_ms=record.timestamp_ms,
        key=None if key == b"-" else base64.b64decode(key),
        value=record.value,
        headers=tuple(pair for pair in record.headers if pair[0] != MOVED_FROM),
    )
