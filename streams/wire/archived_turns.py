"""Records of the topic `archive`: the last record of each turn, by memory id, when the log of turns no longer has it.

Enters: a record of the log of turns, or what is known of a forgotten turn. Leaves: a record of the archive, and the
original again, with its place, time, key and headers. A forgotten turn keeps its identity, so that it stays forgotten
where the archive is replayed, and nothing of what was said.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import datetime

from pydantic_core import from_json, to_json

from schemas.messages.records import Headers, Outgoing, Record
from schemas.moments import milliseconds_of

ARCHIVED_FROM = "modestream_archived_from"
"""Header of an archived record: `offset:timestamp_ms:key` of the original, the key in base64 or `-` for none."""

POSITION_KEY = b"position"
"""Key of the record that says how far a partition of turns is archived; memory ids are UUIDs."""

FORGOTTEN_TEXT = "[forgotten]"
"""The content of a forgotten turn's record, in place of what was said."""


def archived_turn(topic: str, memory_id: str, record: Record) -> Outgoing:
    """Return the record of the archive for a record of the log."""
    key = "-" if record.key is None else base64.b64encode(record.key).decode()
    origin = f"{record.offset}:{record.timestamp_ms}:{key}".encode()
    headers: Headers = ((ARCHIVED_FROM, origin), *record.headers)
    return Outgoing(topic, memory_id.encode(), record.value, headers, record.partition, is_unhurried=True)


def archived_position(topic: str, partition: int, next_offset: int) -> Outgoing:
    """Return the record that says that all turns before an offset are archived."""
    value = to_json({"schema": "archive_position.v1", "next_offset": next_offset})
    return Outgoing(topic, POSITION_KEY, value, partition=partition, is_unhurried=True)


def original_turn(record: Record, topic: str) -> Record | None:
    """Return the record of the log that a record of the archive holds; None for one that holds none."""
    origin = re.fullmatch(rb"(\d{1,18}):(-?\d{1,18}):(-|[A-Za-z0-9+/]*={0,2})", record.header(ARCHIVED_FROM) or b"")
    if origin is None or record.value is None:
        return None
    offset, timestamp_ms, encoded = origin.groups()
    try:
        key = None if encoded == b"-" else base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return None
    headers = tuple(pair for pair in record.headers if pair[0] != ARCHIVED_FROM)
    return Record(topic, record.partition, int(offset), int(timestamp_ms), key, record.value, headers)


def position_in(record: Record) -> int | None:
    """Return the offset before which all turns are archived, by a position record; None for another record."""
    if record.key != POSITION_KEY or record.value is None:
        return None
    return int(from_json(record.value)["next_offset"])


def next_archived(record: Record) -> int:
    """Return the offset after what a record of the archive stands for; 0 for one that stands for nothing."""
    position = position_in(record)
    if position is not None:
        return position
    original = original_turn(record, "")
    return 0 if original is None else original.offset + 1


def forgotten_turn(
    turn_id: str,
    scope: Mapping[str, str],
    conversation_id: str,
    role: str,
    occurred_at: datetime | None,
    mode: str | None = None,
) -> bytes:
    """Return the value of a forgotten turn's record: its identity, without what was said."""
    return to_json(
        {
            "schema": "turn.v1",
            "turn_id": turn_id,
            "scope": dict(scope),
            "conversation_id": conversation_id,
            "role": role,
            "content": FORGOTTEN_TEXT,
            "occurred_at": occurred_at,
            "mode": mode,
        }
    )


def forgotten_record(value: bytes, partition: int, boundary: str, offset: int, recorded_at: datetime) -> Record:
    """Return the record of a forgotten turn in the place of its last one."""
    return Record("", partition, offset, milliseconds_of(recorded_at), boundary.encode(), value)
