"""Records of the topic `archive`: the last record of each turn, by memory id, after it has left the log of turns.

Enters: a record of the log of turns, or the identity of a forgotten turn. Leaves: a record of the archive, and from it
the original, with its place, time, key and headers. A forgotten turn keeps its identity, so that it stays forgotten
where the archive is replayed, but not its text.
"""

import re
from collections.abc import Mapping
from datetime import datetime

from pydantic_core import from_json, to_json

from schemas.messages.records import Headers, Outgoing, Record
from schemas.moments import milliseconds_of
from streams.wire.partitioning import KEY_TEXT, key_of_text, key_text

ARCHIVED_FROM = "modestream_archived_from"
"""Header of an archived record: `offset:timestamp_ms:key` of the original, the key in base64 or `-` for none."""

POSITION_KEY = b"position"
"""Key of the record with the archive's position in the log of turns; memory ids are UUIDs."""

FORGOTTEN_TEXT = "[forgotten]"
"""The content of a forgotten turn's record, in place of its text."""


def archived_turn(topic: str, memory_id: str, record: Record) -> Outgoing:
    origin = f"{record.offset}:{record.timestamp_ms}:{key_text(record.key)}".encode()
    headers: Headers = ((ARCHIVED_FROM, origin), *record.headers)
    return Outgoing(topic, memory_id.encode(), record.value, headers, record.partition, is_unhurried=True)


def archived_position(topic: str, partition: int, next_offset: int) -> Outgoing:
    """Return the position record: all turns before an offset are archived."""
    value = to_json({"schema": "archive_position.v1", "next_offset": next_offset})
    return Outgoing(topic, POSITION_KEY, value, partition=partition, is_unhurried=True)


def original_turn(record: Record, topic: str) -> Record | None:
    """Return the log's record from a record of the archive; None for another kind of record."""
    origin = re.fullmatch(rf"(\d{{1,18}}):(-?\d{{1,18}}):({KEY_TEXT})".encode(), record.header(ARCHIVED_FROM) or b"")
    if origin is None or record.value is None:
        return None
    offset, timestamp_ms, encoded = origin.groups()
    try:
        key = key_of_text(encoded)
    except ValueError:
        return None
    headers = tuple(pair for pair in record.headers if pair[0] != ARCHIVED_FROM)
    return Record(topic, record.partition, int(offset), int(timestamp_ms), key, record.value, headers)


def position_in(record: Record) -> int | None:
    """Return the offset in a position record, before which all turns are archived; None for any other record."""
    if record.key != POSITION_KEY or record.value is None:
        return None
    return int(from_json(record.value)["next_offset"])


def is_text_archived(record: Record) -> bool:
    original = original_turn(record, "")
    return original is not None and from_json(original.value or b"{}").get("content") != FORGOTTEN_TEXT


def forgotten_turn(
    turn_id: str,
    scope: Mapping[str, str],
    conversation_id: str,
    role: str,
    occurred_at: datetime | None,
    mode: str | None = None,
) -> bytes:
    """Return the value of a forgotten turn's record: its identity, without its text."""
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
