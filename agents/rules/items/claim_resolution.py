"""Which of the items that say something of one thing stands: the one that was said last. Pure, whatever came first.

Enters: items, and what is held of claims. Leaves: the claims of an item, what is held then, and what took its place.
"""

import hashlib
import json
from collections.abc import Mapping

from schemas.claims import Claim, ClaimEntry
from schemas.memories import Memory

MAX_CLAIM_VALUES = 100
"""Values of one claim that are kept: one that is older was replaced, and stays so."""

ClaimsByKey = dict[str, ClaimEntry]
"""The claims of an item by their keys, with when it says so."""


def claims_of(item: Memory | None) -> ClaimsByKey:
    """The claims of an item, the last of its supports first: each with the last that says so.

    One that a consolidation has merged into another claims nothing: the other does.
    """
    if item is None or item.item is None or item.superseded_in is not None:
        return {}
    said = [one for one in reversed(item.item.supports) if one.claim is not None]
    claimed: ClaimsByKey = {}
    for one in said:
        claimed.setdefault(_key(item, one.claim or ""), ClaimEntry(one.occurred_at, one.source, item.memory_id))
    return claimed


def update_claim(claim: Claim, memory_id: str, held: ClaimEntry | None = None) -> Claim:
    """A claim that an item no longer says something of, or says it at this time."""
    others = [one for one in claim.held if one.memory_id != memory_id]
    return Claim(held=tuple(sorted([*others, *([held] if held else [])])[-MAX_CLAIM_VALUES:]))


def preceding_item_ids(claim: Claim, memory_id: str) -> list[str]:
    """The items whose place may be taken by another when this item comes, goes or is said again."""
    places = [place for place, one in enumerate(claim.held) if one.memory_id == memory_id]
    return [claim.held[place - 1].memory_id for place in places if place > 0]


def successor(item: Memory, claims: Mapping[str, Claim]) -> ClaimEntry | None:
    """What took an item's place: of what all its supports claim, something else was said later; None while it stands.

    It is what was said next, so that the chain tells what held when. One that was said without claiming anything
    stands.
    """
    claimed = claims_of(item)
    supports = item.item.supports if item.item else ()
    if not claimed or any(one.claim is None for one in supports):
        return None
    later = [_next(claims[key], held) for key, held in claimed.items()]
    return later[0] if all(later) else None


def apply_successor(item: Memory, after: ClaimEntry | None) -> Memory:
    """The item with what took its place. What a consolidation decided stays."""
    if item.item is None or item.superseded_in is not None:
        return item
    until = after.occurred_at if after else None
    noted = item.item.model_copy(update={"valid_until": until})
    return item.model_copy(update={"superseded_by": after.memory_id if after else None, "item": noted})


def _next(claim: Claim, held: ClaimEntry) -> ClaimEntry | None:
    return next((one for one in claim.held if one > held and one.memory_id != held.memory_id), None)


def _key(item: Memory, claim: str) -> str:
    named = json.dumps([sorted(item.scope.items()), item.mode, claim], separators=(",", ":"))
    return hashlib.sha256(named.encode()).hexdigest()[:32]
