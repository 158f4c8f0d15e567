"""Records: built from Python values, as read from Kafka, their places, and the identity of turns."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

from modestream_client.failures import MemoryServiceError


def build_record(schema: str, **fields: object) -> dict[str, Any]:
    """Build a record of a kind and version, such as `turn.v1`, ready for JSON.

    Raises ValueError for any time without a zone.
    """
    return {"schema": schema, **{name: _plain(value) for name, value in fields.items()}}


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value.isoformat()} has no time zone: pass an aware datetime")
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(part) for part in value]
    return value


Headers = tuple[tuple[str, bytes | None], ...]
"""Names may repeat. A null value is distinct from an empty one, and stays so when a record is copied."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record as read. `timestamp_ms` is milliseconds since the epoch."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    written_after_s: float | None = None
    """A time on the reader's monotonic clock after which it was written; None if unknown."""

    def header(self, name: str) -> bytes | None:
        """Return the first header of that name, a null value as empty; None without such a header."""
        return next((value or b"" for key, value in self.headers if key == name), None)


TURNS_TOPIC = "turns"
"""The topic of these places, without its prefix."""

READ_AFTER = re.compile(r"(\d{1,9}):(\d{1,18})", re.ASCII)
"""Digits enough for every partition and every 64-bit offset, and few enough to bound the number's size."""


class Written(NamedTuple):
    """Partition and offset of a written record.

    >>> Written(3, 17).read_after
    '3:17'
    """

    partition: int
    offset: int

    @property
    def read_after(self) -> str:
        """The place as text; pass it as `read_after` to a read that must include this write."""
        return f"{self.partition}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `"<partition>:<offset>"`. Raises `MemoryServiceError` with code `invalid_value` for anything else.

        >>> Written.parse("3:17")
        Written(partition=3, offset=17)
        """
        if (numbers := READ_AFTER.fullmatch(text)) is None:
            raise invalid_read_after(f"{text[:40]!r} is not <partition>:<offset>, as the answers of writes have it")
        return cls(int(numbers[1]), int(numbers[2]))


def invalid_read_after(problem: str) -> MemoryServiceError:
    """Build the error for a `read_after` that is not a place of the user."""
    return MemoryServiceError("invalid_value", problem, "read_after")


_encoder = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def canonical(value: object) -> str:
    """Return a value as canonical JSON, for ids and hashes."""
    return _encoder.encode(value)


def derive_turn_id(
    scope: Mapping[str, str], conversation_id: str, role: str, content: str, occurred_at: datetime
) -> str:
    """Derive the turn id of a turn that was published without one (docs/contract.md)."""
    parts = [dict(scope), conversation_id, role, content, round(occurred_at.timestamp() * 1000)]
    return "derived-" + hashlib.sha256(canonical(parts).encode()).hexdigest()[:32]


def with_identity(turn: dict[str, Any], now_ms: int) -> dict[str, Any]:
    """Return a `turn.v1` with `turn_id` and `occurred_at`, as a worker would fill them in at `now_ms`.

    Kafka tools that copy records seldom keep their timestamps: with both the record is the same turn whenever it is
    written.

    A turn with the caller's own id stays as it is: as an edit without `occurred_at` it keeps the time of the first
    version. So does an invalid turn: the worker reports the reason to its sender.
    """
    if turn.get("turn_id") is not None:
        return turn
    stated = turn.get("occurred_at")
    try:
        moment = datetime.fromtimestamp(now_ms / 1000, UTC) if stated is None else datetime.fromisoformat(stated)
        if moment.tzinfo is None:
            return turn
        scope = {"project_id": "default", **turn["scope"]}
        turn_id = derive_turn_id(scope, turn["conversation_id"], turn["role"], turn["content"], moment)
    except (KeyError, TypeError, ValueError, OverflowError):
        return turn
    written_at = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z") if stated is None else stated
    return {**turn, "turn_id": turn_id, "occurred_at": written_at}
