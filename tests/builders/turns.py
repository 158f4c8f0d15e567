import json
from typing import Any

from schemas.messages.records import Record
from schemas.messages.turns import Turn
from streams.wire.partitioning import partition_of

PARTITIONS = 4
TIMESTAMP_MS = 1_772_357_400_000
"""2026-03-01T09:30:00Z."""


def turn_fields(content: object = "The deploy target is fly.io now.", **changes: Any) -> dict[str, Any]:
    """Return a valid turn as JSON fields, without id and time; `changes` replace or add fields."""
    return {
        "schema": "turn.v1",
        "scope": {"user_id": "u1", "project_id": "p1"},
        "conversation_id": "c1",
        "role": "user",
        "content": content,
    } | changes


def turn(content: str = "The deploy target is fly.io now.", **changes: Any) -> Turn:
    return Turn.model_validate_json(json.dumps(turn_fields(content, **changes)))


def as_bytes(fields: Any) -> bytes:
    return fields if isinstance(fields, bytes) else json.dumps(fields).encode()


def record(value: Any = None, *, key: bytes | None = b"u1", offset: int = 0, **changes: Any) -> Record:
    """Return a record of the turns topic, in the partition of its key unless `changes` override it."""
    known: dict[str, Any] = {
        "topic": "memory.turns",
        "partition": partition_of(key or b"u1", PARTITIONS),
        "offset": offset,
        "timestamp_ms": TIMESTAMP_MS + offset,
        "key": key,
        "value": None if value is None else as_bytes(value),
        "headers": (),
    }
    return Record(**(known | changes))
