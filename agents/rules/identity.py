"""Deterministic ids and hashes: the same turn is the same memory, whoever replays it, whenever (CONTRACT §8.2)."""

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime

NAMESPACE = uuid.UUID("4d1f2a3e-5f0b-5c1e-9a41-6d6f64657374")
"""The namespace of all ids. Changing it changes every id that was ever given out."""


def memory_id(scope: Mapping[str, str], conversation_id: str, turn_id: str) -> str:
    """The id of the memory that a turn is: UUIDv5 of its scope, conversation and turn id."""
    return str(uuid.uuid5(NAMESPACE, _canonical(["turn", dict(scope), conversation_id, turn_id])))


def derived_turn_id(
    scope: Mapping[str, str], conversation_id: str, role: str, content: str, occurred_at: datetime
) -> str:
    """The turn id of a turn that came without one (CONTRACT §4)."""
    parts = [dict(scope), conversation_id, role, content, round(occurred_at.timestamp() * 1000)]
    return "derived-" + hashlib.sha256(_canonical(parts).encode()).hexdigest()[:32]


def text_hash(texts: Iterable[str]) -> str:
    """The hash of a memory's text and of the texts of its resources: 128 bits in hexadecimal."""
    return hashlib.sha256(_canonical(list(texts)).encode()).hexdigest()[:32]


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
