"""Records that arrive where they don't belong: how they are moved, once, and what they were before (CONTRACT §1)."""

import base64
import binascii
import re

from schemas.records import Outgoing, Record

MOVED_FROM = "modestream_moved_from"
"""On a moved record: `partition:offset:key` of where it was written, the key in base64 or `-` for none."""

MAX_MOVES = 3
"""A record that was moved once is where it belongs. It is moved again where a tool copied it, headers and all, to
another partition; one that never arrives means that workers count partitions differently."""


def may_move(record: Record) -> bool:
    """Whether this record has not been moved too often."""
    return sum(name == MOVED_FROM for name, _ in record.headers) < MAX_MOVES


def relocate(record: Record, key: bytes, partition: int) -> Outgoing:
    """The record as it is written where it belongs: value, headers and timestamp as they were."""
    headers = (*record.headers, _origin(record))
    return Outgoing(record.topic, key, record.value, headers, partition, record.timestamp_ms)


def forward(record: Record, topic: str, key: bytes, value: bytes) -> Outgoing:
    """What another topic is told instead of a reply: the headers say who waits for it, and under which key."""
    headers = record.headers if record.key == key else (*record.headers, _origin(record))
    return Outgoing(topic, key, value, headers, record.partition, record.timestamp_ms)


def _origin(record: Record) -> tuple[str, bytes]:
    was = "-" if record.key is None else base64.b64encode(record.key).decode()
    return MOVED_FROM, f"{record.partition}:{record.offset}:{was}".encode()


def original_record(record: Record) -> Record:
    """The record as its producer wrote it, moved or not. A header that `relocate` can't have written is left alone."""
    origin = re.fullmatch(rb"(\d{1,9}):(\d{1,18}):(-|[A-Za-z0-9+/]*={0,2})", record.header(MOVED_FROM) or b"")
    if origin is None:
        return record
    partition, offset, encoded = origin.groups()
    try:
        key = None if encoded == b"-" else base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return record
    return Record(
        topic=record.topic,
        partition=int(partition),
        offset=int(offset),
        timestamp_ms=record.timestamp_ms,
        key=key,
        value=record.value,
        headers=tuple(pair for pair in record.headers if pair[0] != MOVED_FROM),
    )
