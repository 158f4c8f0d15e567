"""A record as one line of JSON. Pure.

Keys, values and headers are texts where they are UTF-8, and otherwise `{"base64": "…"}`; a null stays a null.
"""

import base64
from typing import Any

from pydantic_core import from_json, to_json

from schemas.messages.records import Record


def line_of(record: Record) -> bytes:
    """Return the line of a record, with its end."""
    return (
        to_json(
            {
                "offset": record.offset,
                "timestamp_ms": record.timestamp_ms,
                "key": _text(record.key),
                "value": _text(record.value),
                "headers": [[name, _text(value)] for name, value in record.headers],
            }
        )
        + b"\n"
    )


def record_in(line: bytes, topic: str, partition: int) -> Record:
    """Return the record of a line. Raises ValueError for a line that is none."""
    try:
        read = from_json(line)
        headers = tuple((str(name), _bytes(value)) for name, value in read["headers"])
        place = (topic, partition, int(read["offset"]), int(read["timestamp_ms"]))
        return Record(*place, _bytes(read["key"]), _bytes(read["value"]), headers)
    except (KeyError, TypeError) as problem:
        raise ValueError(f"this line is no record: {problem!r}") from problem


def _text(value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def _bytes(value: Any) -> bytes | None:
    if value is None:
        return None
    return base64.b64decode(value["base64"], validate=True) if isinstance(value, dict) else str(value).encode()
