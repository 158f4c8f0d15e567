"""Partitions: murmur2 of the key, as in Kafka's Java client, and the relocation of a misplaced record.

A relocated record keeps value, headers and timestamp; a header has its first place, so that its reply and its dead
letter are those of the original.
"""

import base64
import binascii
import re
from functools import cache

from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from pydantic_core import SchemaValidator, core_schema, from_json

from schemas.messages.decoding import MAX_VALUES, count_values
from schemas.messages.records import Outgoing, Record

# The boundary of a record's scope, read before the record is decoded and validated. Pure.
#
# It names the record's user, for queues; the key of a record may differ, or be missing.

MAX_PARSED_BYTES = 64 * 1024
"""Of a longer value only the boundary becomes objects: this runs on the event loop for each record."""


def boundary_in(record: Record, fields: BoundaryFields = USER_BOUNDARY) -> str:
    """Return the boundary string of the record's scope; empty if it can't have one."""
    value = record.value or b""
    try:
        if len(value) <= MAX_PARSED_BYTES:
            return fields.key(from_json(value)["scope"])
        # It will be refused.
        if len(value) > MAX_VALUES and count_values(value) > MAX_VALUES:
            return ""
        return fields.key(_scope_reader(tuple(fields)).validate_json(value)["scope"])
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return ""


KEY_TEXT = r"-|[A-Za-z0-9+/]*={0,2}"
"""Pattern of the syntax only; decoding may still fail."""


def key_text(key: bytes | None) -> str:
    """Return a key as text.

    >>> key_text(b"u1"), key_text(None)
    ('dTE=', '-')
    """
    return "-" if key is None else base64.b64encode(key).decode()


def key_of_text(encoded: bytes) -> bytes | None:
    """Return the key of a text from `key_text`. Raises ValueError for any other text."""
    if encoded == b"-":
        return None
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error as problem:
        raise ValueError("no key in base64") from problem


_MASK = 0xFFFFFFFF

_MULTIPLIER = 0x5BD1E995

_SEED = 0x9747B28C
"""Multiplier and seed of Kafka's `Utils.murmur2`."""


def partition_of(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """Compute the 32-bit hash of Kafka's Java client, unsigned."""
    mixed = _SEED ^ len(data)
    whole = len(data) - len(data) % 4
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        mixed = mixed * _MULTIPLIER & _MASK ^ word
    if whole < len(data):
        mixed = (mixed ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    mixed = (mixed ^ mixed >> 13) * _MULTIPLIER & _MASK
    return mixed ^ mixed >> 15


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
    return MOVED_FROM, f"{record.partition}:{record.offset}:{key_text(record.key)}".encode()


def original_record(record: Record) -> Record:
    """Return the record as its producer wrote it. A header that `relocate` can't have written is ignored."""
    origin = re.fullmatch(rf"(\d{{1,9}}):(\d{{1,18}}):({KEY_TEXT})".encode(), record.header(MOVED_FROM) or b"")
    if origin is None:
        return record
    partition, offset, encoded = origin.groups()
    try:
        key = key_of_text(encoded)
    except ValueError:
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


@cache
def _scope_reader(fields: tuple[str, ...]) -> SchemaValidator:
    """Return a reader of these fields of a scope, which skips everything else in a JSON text."""
    named = {field: core_schema.typed_dict_field(core_schema.str_schema()) for field in fields}
    scope = core_schema.typed_dict_schema(named)
    return SchemaValidator(core_schema.typed_dict_schema({"scope": core_schema.typed_dict_field(scope)}))
