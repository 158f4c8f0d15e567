"""Deterministic ids and hashes: the same turn is the same memory, whoever replays it, whenever (CONTRACT §8.2)."""

import hashlib
import json
import unicodedata
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime

ID_NAMESPACE = uuid.UUID("4d1f2a3e-5f0b-5c1e-9a41-6d6f64657374")
"""The namespace of all ids. Changing it changes every id that was ever given out."""

_MEANT = frozenset("#@%&-")
"""Punctuation that is part of what a word means: `-5`, `50%`, `C#`."""

_APOSTROPHES = str.maketrans("\u2018\u2019", "''")


def derive_memory_id(scope: Mapping[str, str], conversation_id: str, turn_id: str) -> str:
    """The id of the memory that a turn is: UUIDv5 of its scope, conversation and turn id."""
    return str(uuid.uuid5(ID_NAMESPACE, _canonical(["turn", dict(scope), conversation_id, turn_id])))


def derive_turn_id(
    scope: Mapping[str, str], conversation_id: str, role: str, content: str, occurred_at: datetime
) -> str:
    """The turn id of a turn that came without one (CONTRACT §4)."""
    parts = [dict(scope), conversation_id, role, content, round(occurred_at.timestamp() * 1000)]
    return "derived-" + hashlib.sha256(_canonical(parts).encode()).hexdigest()[:32]


def derive_item_id(scope: Mapping[str, str], mode: str, memory_type: str, text: str) -> str:
    """The id of an item: UUIDv5 of its scope, mode, type and what its text says, so that two that say it are one."""
    return str(uuid.uuid5(ID_NAMESPACE, _canonical(["item", dict(scope), mode, memory_type, normalise_text(text)])))


def derive_distilled_id(scope: Mapping[str, str], mode: str, sources: Iterable[str]) -> str:
    """The id of what is distilled from the memories with these ids: UUIDv5 of scope, mode and the ids in order."""
    return str(uuid.uuid5(ID_NAMESPACE, _canonical(["distilled", dict(scope), mode, sorted(sources)])))


def normalise_text(text: str) -> str:
    """A text without case, compatibility forms, punctuation around its words, and with single spaces."""
    pieces = unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).casefold().split()
    return " ".join(word for piece in pieces if (word := _bare(piece))) or " ".join(pieces)


def _bare(word: str) -> str:
    """A word without the punctuation around it; most have none."""
    if word[0].isalnum() and word[-1].isalnum():
        return word
    start, end = 0, len(word)
    while start < end and _is_edge(word[start]):
        start += 1
    while end > start and _is_edge(word[end - 1]):
        end -= 1
    return "" if word[start:end] == "-" else word[start:end]


def _is_edge(character: str) -> bool:
    return not character.isalnum() and character not in _MEANT and unicodedata.category(character)[0] == "P"


def hash_texts(texts: Iterable[str]) -> str:
    """The hash of a memory's text and of the texts of its resources: 128 bits in hexadecimal."""
    return hashlib.sha256(_canonical(list(texts)).encode()).hexdigest()[:32]


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
