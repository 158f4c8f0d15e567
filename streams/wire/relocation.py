"""Records in the wrong partition: rewrite them to the right one, and restore the original from the moved record."""

import base64
import binascii
import re

from schemas.records import Outgoing, Record

MOVED_FROM = "modestream_moved_from"
"""Header of a moved record: `partition:offset:key` of the original, the key in base64 or `-` for none."""

MAX_MOVES = 3
"""Limit of moves of one record. One move is enough; a tool that copies a moved record to another partition, headers
included, causes another. A record beyond the limit means that workers disagree on the number of partitions."""


def may_move(record: Record) -> bool:
    """True if the record has not reached the limit of moves."""
    return sum(name == MOVED_FROM for name, _ in record.headers) < MAX_MOVES


def relocate(record: Record, key: bytes, partition: int) -> Outgoing:
    """Build the record for its right partition, with value, headers and timestamp unchanged."""
    headers = (*record.headers, _origin(record))
    return Outgoing(record.topic, key, record.value, headers, partition, record.timestamp_ms)


def forward(record: Record, topic: str, key: bytes, value: bytes) -> Outgoing:
    """Build a record for another topic, where it is answered instead; headers keep reply address and original key."""
    headers = record.headers if record.key == key else (*record.headers, _origin(record))
    return Outgoing(topic, key, value, headers, record.partition, record.timestamp_ms)


def _origin(record: Record) -> tuple[str, bytes]:
    key = "-" if record.key is None else base64.b64encode(record.key).decode()
    return MOVED_FROM, f"{record.partition}:{record.offset}:{key}".encode()


def original_record(record: Record) -> Record:
    """Return the record as its producer wrote it. A header that `relocate` can't have written is left alone."""
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
