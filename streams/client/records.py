"""Writes Python values as the wire contract has them (CONTRACT §1). Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any


def build_record(schema: str, **fields: object) -> dict[str, Any]:
    """Make a record of this kind and version, such as `turn.v1`, ready for JSON.

    Raises ValueError for a time without a zone, anywhere in it.
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
        raise ValueError(f"{moment.isoformat()} has no time zone")
    return moment
