"""Resolve conflicting claims of items: last said wins, in any order of arrival. Pure."""

import hashlib
import json
from collections.abc import Mapping, Sequence

from modestream_client.vocabulary import ItemKind

from schemas.state.memories import Claim, ClaimEntry, Memory, Support
from schemas.state.understanding import Understanding

MAX_CLAIM_VALUES = 100
"""Latest entries per claim: older ones were superseded and stay so."""

ClaimsByKey = dict[str, ClaimEntry]
"""The claims of an item by key, each with its latest time."""


CLAIM_KINDS: frozenset[ItemKind | None] = frozenset({"fact", "decision", "correction", "preference"})
"""Kinds with claims; two rules or two goals can hold together. A preference has one if it is a favourite thing."""


def is_replaceable(item: Memory) -> bool:
    """True if a language model may find that a later item replaces this one.

    What a consolidation has merged into another item is not: the other one stands for it.
    """
    is_open = item.superseded_in is None and item.visibility.searchable
    return is_open and item.item is not None and item.item.kind in CLAIM_KINDS and bool(item.item.supports)


def with_known_items(found: Understanding, earlier: Mapping[str, Memory]) -> Understanding:
    """Return a model's answer with the ids of the items that it was shown by name; names that it was not shown go."""
    if not any(item.replaces for item in found.items):
        return found
    items = tuple(
        item.model_copy(
            update={"replaces": tuple(dict.fromkeys(earlier[one].memory_id for one in item.replaces if one in earlier))}
        )
        for item in found.items
    )
    return found.model_copy(update={"items": items})


def replaced_by(item: Memory | None) -> tuple[str, ...]:
    """Return the ids of the items that an item replaces, as a language model has found."""
    supports = item.item.supports if item is not None and item.item is not None else ()
    return tuple(dict.fromkeys(memory_id for support in supports for memory_id in support.replaces))


def claims_of(item: Memory | None) -> ClaimsByKey:
    """Return the claims of an item, the latest first, each with its latest support.

    To replace an item is a claim about that item: in its scope and its mode, like all others.

    An item that a consolidation merged into another one has none: the other one has them. Nor has one that no search
    finds: it supersedes nothing that is found.
    """
    if item is None or item.item is None or item.superseded_in is not None or not item.visibility.searchable:
        return {}
    claims: ClaimsByKey = {}
    for support in reversed(item.item.supports):
        entry = ClaimEntry(support.occurred_at, support.source, item.memory_id)
        named = () if support.claim is None else (support.claim,)
        for claim in (*named, *map(_replacing, support.replaces)):
            claims.setdefault(_key(item, claim), entry)
    return claims


def keys_of_successor(item: Memory) -> set[str]:
    """Return the keys of all claims that decide whether an item is superseded."""
    own_claims = {_key(item, one.claim) for one in _supports(item) if one.claim is not None}
    return own_claims | ({_key(item, _replacing(item.memory_id))} if is_replaceable(item) else set())


def update_claim(claim: Claim, memory_id: str, entry: ClaimEntry | None = None) -> Claim:
    """Replace the entry of an item; without `entry`, remove it."""
    others = [one for one in claim.held if one.memory_id != memory_id]
    return Claim(held=tuple(sorted([*others, *([entry] if entry else [])])[-MAX_CLAIM_VALUES:]))


def preceding_item_ids(claim: Claim, memory_id: str) -> list[str]:
    """Return the items with a successor that may change when this item is added, removed or said again."""
    indexes = [index for index, one in enumerate(claim.held) if one.memory_id == memory_id]
    return [claim.held[index - 1].memory_id for index in indexes if index > 0]


def successor(item: Memory, claims: Mapping[str, Claim]) -> ClaimEntry | None:
    """Return the entry that superseded an item, None while the item is current.

    An item is superseded if each of its claims has a later entry of another item, or if an item that was said later
    than it replaces it. The successor is the next entry, so that the chain tells what held when. By its claims, an item
    with a support without a claim is current.
    """
    by_claims, replacing = _successor_by_claims(item, claims), _successor_by_model(item, claims)
    return min((one for one in (by_claims, replacing) if one is not None), default=None)


def apply_successor(item: Memory, after: ClaimEntry | None) -> Memory:
    """Return the item superseded by `after`, or current without it; the decision of a consolidation stays."""
    if item.item is None or item.superseded_in is not None:
        return item
    until = after.occurred_at if after else None
    updated = item.item.model_copy(update={"valid_until": until})
    return item.model_copy(update={"superseded_by": after.memory_id if after else None, "item": updated})


def _successor_by_claims(item: Memory, claims: Mapping[str, Claim]) -> ClaimEntry | None:
    supports = _supports(item)
    if not claims_of(item) or any(one.claim is None for one in supports):
        return None
    entries: ClaimsByKey = {}
    for one in reversed(supports):
        entries.setdefault(_key(item, one.claim or ""), ClaimEntry(one.occurred_at, one.source, item.memory_id))
    later = [_next_entry(claims[key], entry) for key, entry in entries.items()]
    return later[0] if all(later) else None


def _successor_by_model(item: Memory, claims: Mapping[str, Claim]) -> ClaimEntry | None:
    if not is_replaceable(item):
        return None
    last = _supports(item)[-1]
    replacing = claims[_key(item, _replacing(item.memory_id))]
    return _next_entry(replacing, ClaimEntry(last.occurred_at, last.source, item.memory_id))


def _supports(item: Memory) -> Sequence[Support]:
    return () if item.item is None else item.item.supports


def _replacing(memory_id: str) -> str:
    return f"replaces:{memory_id}"


def _next_entry(claim: Claim, entry: ClaimEntry) -> ClaimEntry | None:
    return next((one for one in claim.held if one > entry and one.memory_id != entry.memory_id), None)


def _key(item: Memory, claim: str) -> str:
    identity = json.dumps([sorted(item.scope.items()), item.mode, claim], separators=(",", ":"))
    return hashlib.sha256(identity.encode()).hexdigest()[:32]
