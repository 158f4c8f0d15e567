"""Convert Python values to the JSON of the wire contract. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any


def build_record(schema: str, **fields: object) -> dict[str, Any]:
    """Build a record of a kind and version, such as `turn.v1`, ready for JSON.

    Raises ValueError for any time without a zone.
    """
    return {"schema": schema, **{name: _plain(value) for name, value in fields.items()}}


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return _with_zone(value).isoformat()
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(part) for part in value]
    return value


def _with_zone(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone: pass an aware datetime")
    return moment
