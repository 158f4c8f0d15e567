"""The identity of turns: a turn that is written without an id gets one, so that its record can be replayed.

Kafka tools that copy records seldom keep their timestamps. A record with `turn_id` and `occurred_at` is the same turn
whenever it is written.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_encoder = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def canonical(value: object) -> str:
    """Return a value as JSON of one form, of which ids and hashes are made."""
    return _encoder.encode(value)


def derive_turn_id(
    scope: Mapping[str, str], conversation_id: str, role: str, content: str, occurred_at: datetime
) -> str:
    """Derive the turn id of a turn that was published without one (docs/contract.md)."""
    parts = [dict(scope), conversation_id, role, content, round(occurred_at.timestamp() * 1000)]
    return "derived-" + hashlib.sha256(canonical(parts).encode()).hexdigest()[:32]


def with_identity(turn: dict[str, Any], now_ms: int) -> dict[str, Any]:
    """Return a `turn.v1` with `turn_id` and `occurred_at`, the ones that a worker would give it at `now_ms`.

    A turn with an id of the caller's stays as it is: as an edit without `occurred_at` it keeps the time of the first
    version. So does a turn that is invalid: the worker tells its sender why.
    """
    if turn.get("turn_id") is not None:
        return turn
    given = turn.get("occurred_at")
    try:
        moment = datetime.fromtimestamp(now_ms / 1000, UTC) if given is None else datetime.fromisoformat(given)
        if moment.tzinfo is None:
            return turn
        scope = {"project_id": "default", **turn["scope"]}
        turn_id = derive_turn_id(scope, turn["conversation_id"], turn["role"], turn["content"], moment)
    except (KeyError, TypeError, ValueError, OverflowError):
        return turn
    written_at = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z") if given is None else given
    return {**turn, "turn_id": turn_id, "occurred_at": written_at}
