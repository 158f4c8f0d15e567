"""Deterministic ids and hashes: replaying a turn gives the same memory id (docs/contract.md)."""

import hashlib
import unicodedata
import uuid
from collections.abc import Iterable, Mapping
from functools import lru_cache

from modestream_client.turn_ids import canonical

ID_NAMESPACE = uuid.UUID("4d1f2a3e-5f0b-5c1e-9a41-6d6f64657374")
"""The UUIDv5 namespace of all ids. Changing it changes every id ever issued."""

_MEANINGFUL_PUNCTUATION = frozenset("#@%&-")
"""Punctuation that belongs to a word: `-5`, `50%`, `C#`."""

KEPT_TEXTS = 256
"""Normalised texts that are kept: an item's id is needed three times while its turn is written, 0.1 ms each."""

_APOSTROPHES = str.maketrans("\u2018\u2019", "''")


def derive_memory_id(scope: Mapping[str, str], conversation_id: str, turn_id: str) -> str:
    """Return the memory id of a turn: UUIDv5 of its scope, conversation and turn id."""
    return str(uuid.uuid5(ID_NAMESPACE, canonical(["turn", dict(scope), conversation_id, turn_id])))


def derive_item_id(scope: Mapping[str, str], mode: str, memory_type: str, text: str) -> str:
    """Return the id of an item: UUIDv5 of scope, mode, type and normalised text, so that repetitions share one id."""
    return str(uuid.uuid5(ID_NAMESPACE, canonical(["item", dict(scope), mode, memory_type, normalise_text(text)])))


def derive_distilled_id(scope: Mapping[str, str], mode: str, sources: Iterable[str]) -> str:
    """Return the id of a memory distilled from `sources`: UUIDv5 of scope, mode and the sorted source ids."""
    return str(uuid.uuid5(ID_NAMESPACE, canonical(["distilled", dict(scope), mode, sorted(sources)])))


@lru_cache(KEPT_TEXTS)
def normalise_text(text: str) -> str:
    """Casefold, apply NFKC, strip punctuation around words, and collapse white space."""
    pieces = unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).casefold().split()
    return " ".join(word for piece in pieces if (word := _strip_punctuation(piece))) or " ".join(pieces)


def _strip_punctuation(word: str) -> str:
    if word[0].isalnum() and word[-1].isalnum():
        return word
    start, end = 0, len(word)
    while start < end and _is_strippable(word[start]):
        start += 1
    while end > start and _is_strippable(word[end - 1]):
        end -= 1
    return "" if word[start:end] == "-" else word[start:end]


def _is_strippable(character: str) -> bool:
    is_punctuation = not character.isalnum() and unicodedata.category(character)[0] == "P"
    return is_punctuation and character not in _MEANINGFUL_PUNCTUATION


def hash_texts(texts: Iterable[str]) -> str:
    """Hash texts in order: 128 bits in hexadecimal."""
    return hashlib.sha256(canonical(list(texts)).encode()).hexdigest()[:32]
