"""Resolve conflicting claims of items: last said wins, in any order of arrival. Pure."""

import hashlib
import json
from collections.abc import Mapping

from schemas.state.memories import Claim, ClaimEntry, Memory

MAX_CLAIM_VALUES = 100
"""Latest entries per claim: older ones were superseded and stay so."""

ClaimsByKey = dict[str, ClaimEntry]
"""The claims of an item by key, each with its latest time."""


def claims_of(item: Memory | None) -> ClaimsByKey:
    """Return the claims of an item, the latest first, each with its latest support.

    An item that a consolidation merged into another one has none: the other one has them. Nor has one that no search
    finds: it supersedes nothing that is found.
    """
    if item is None or item.item is None or item.superseded_in is not None or not item.visibility.searchable:
        return {}
    claims: ClaimsByKey = {}
    for support in reversed(item.item.supports):
        if support.claim is not None:
            entry = ClaimEntry(support.occurred_at, support.source, item.memory_id)
            claims.setdefault(_key(item, support.claim), entry)
    return claims


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

    An item is superseded if each of its claims has a later entry of another item. The successor is the next entry, so
    that the chain tells what held when. An item with a support without a claim is current.
    """
    entries = claims_of(item)
    supports = item.item.supports if item.item else ()
    if not entries or any(one.claim is None for one in supports):
        return None
    later = [_next_entry(claims[key], entry) for key, entry in entries.items()]
    return later[0] if all(later) else None


def apply_successor(item: Memory, after: ClaimEntry | None) -> Memory:
    """Return the item superseded by `after`, or current without it; the decision of a consolidation stays."""
    if item.item is None or item.superseded_in is not None:
        return item
    until = after.occurred_at if after else None
    updated = item.item.model_copy(update={"valid_until": until})
    return item.model_copy(update={"superseded_by": after.memory_id if after else None, "item": updated})


def _next_entry(claim: Claim, entry: ClaimEntry) -> ClaimEntry | None:
    return next((one for one in claim.held if one > entry and one.memory_id != entry.memory_id), None)


def _key(item: Memory, claim: str) -> str:
    identity = json.dumps([sorted(item.scope.items()), item.mode, claim], separators=(",", ":"))
    return hashlib.sha256(identity.encode()).hexdigest()[:32]
