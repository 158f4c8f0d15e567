"""Resolve conflicting claims of items: last said wins, in any order of arrival. Pure."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from agents.rules.items.item_merging import modeless_item_id
from agents.rules.items.kinds import CLAIM_KINDS
from schemas.state.memories import Claim, ClaimEntry, Memory, Support
from schemas.state.understanding import Understanding

MAX_CLAIM_VALUES = 100
"""Latest entries per claim: older ones were superseded and stay so."""

ClaimsByKey = dict[str, ClaimEntry]
"""The claims of an item by key, each with its latest time."""


def is_replaceable(item: Memory) -> bool:
    """True if a language model may find that a later item replaces this one.

    Not if a consolidation has merged it into another item, which represents it.
    """
    is_open = item.superseded_in is None and item.visibility.searchable
    return is_open and item.item is not None and item.item.kind in CLAIM_KINDS and bool(item.item.supports)


def with_known_items(understanding: Understanding, earlier: Mapping[str, Memory]) -> Understanding:
    """Return a model's answer with its names resolved, as `Support.replaces`; names that were not shown are dropped."""
    if not any(item.replaces for item in understanding.items):
        return understanding
    items = tuple(
        item.model_copy(
            update={"replaces": tuple(dict.fromkeys(_name(earlier[name]) for name in item.replaces if name in earlier))}
        )
        for item in understanding.items
    )
    return understanding.model_copy(update={"items": items})


def turns_of_replaced(item: Memory | None) -> tuple[str, ...]:
    """Return the ids of turns that state the items replaced by an item, as found by a language model."""
    supports = () if item is None else _supports(item)
    return tuple(dict.fromkeys(name.partition("/")[0] for support in supports for name in support.replaces))


def claims_of(item: Memory | None) -> ClaimsByKey:
    """Return the claims of an item, each with its latest support that may supersede, or else with its latest.

    Replacing an item is a claim about that item: in its scope and its mode, like all others.

    An item that a consolidation merged into another one has none: the other one has them. Nor has an unsearchable one:
    it supersedes nothing searchable.
    """
    if item is None or item.item is None or item.superseded_in is not None or not item.visibility.searchable:
        return {}
    claims: ClaimsByKey = {}
    for support in _by_weight(item):
        named = () if support.claim is None else (support.claim,)
        for claim in (*named, *(_replacing(name.partition("/")[2]) for name in support.replaces)):
            claims.setdefault(_key(item, claim), _entry(item, support))
    return claims


def keys_of_successor(item: Memory) -> set[str]:
    """Return the keys of all claims that decide whether an item is superseded."""
    own_claims = {_key(item, support.claim) for support in _supports(item) if support.claim is not None}
    return own_claims | (_keys_of_replacing(item) if is_replaceable(item) else set())


def update_claim(claim: Claim, memory_id: str, entry: ClaimEntry | None = None) -> Claim:
    """Replace the entry of an item; without `entry`, remove it."""
    others = [other for other in claim.held if other.memory_id != memory_id]
    return Claim(held=tuple(sorted([*others, *([entry] if entry else [])])[-MAX_CLAIM_VALUES:]))


def preceding_item_ids(claim: Claim, memory_id: str) -> list[str]:
    """Return the items whose successor may change when this item is added, removed or said again.

    These are the ones before it, back to the last one that may supersede: it is the successor of earlier ones.
    """
    index = next((index for index, entry in enumerate(claim.held) if entry.memory_id == memory_id), 0)
    preceding: list[str] = []
    for earlier in reversed(claim.held[:index]):
        preceding.append(earlier.memory_id)
        if earlier.may_supersede:
            break
    return preceding


def successor(item: Memory, claims: Mapping[str, Claim]) -> ClaimEntry | None:
    """Return the entry that superseded an item, None while the item is current.

    An item is superseded if each of its claims has a later entry of another item that may supersede, or if a later item
    replaces it. The successor is the next entry, so that the chain shows what was valid when. An item with a support
    without a claim is current as far as claims go.
    """
    entries: list[ClaimEntry | None] = []
    if claims_of(item) and all(support.claim is not None for support in _supports(item)):
        by_key: ClaimsByKey = {}
        for support in _by_weight(item):
            by_key.setdefault(_key(item, support.claim or ""), _entry(item, support))
        later = [_next_entry(claims[key], entry) for key, entry in by_key.items()]
        entries += later[:1] if all(later) else []
    if is_replaceable(item):
        last = _entry(item, _by_weight(item)[0])
        entries += [_next_entry(claims[key], last) for key in _keys_of_replacing(item)]
    return min((entry for entry in entries if entry is not None), default=None)


def apply_successor(item: Memory, after: ClaimEntry | None, at: datetime | None = None) -> Memory:
    """Return the item superseded by `after` since a time, or current without it; what a consolidation decided stays."""
    if item.item is None or item.superseded_in is not None:
        return item
    until = after.occurred_at if after else None
    updated = item.item.model_copy(update={"valid_until": until})
    successor_id, since = (after.memory_id, at) if after else (None, None)
    return item.model_copy(update={"superseded_by": successor_id, "superseded_at": since, "item": updated})


def _supports(item: Memory) -> Sequence[Support]:
    return () if item.item is None else item.item.supports


def _by_weight(item: Memory) -> list[Support]:
    """Return the supports of an item: those that may supersede, then the others, each the latest first.

    So an assistant that repeats a user's statement neither updates its date nor takes its weight.
    """
    latest_first = reversed(_supports(item))
    return sorted(latest_first, key=lambda support: not support.may_supersede)


def _entry(item: Memory, support: Support) -> ClaimEntry:
    return ClaimEntry(support.occurred_at, support.source, item.memory_id, support.may_supersede)


def _name(item: Memory) -> str:
    """Return the name of an item in `Support.replaces`, which stays the same in another mode."""
    last = _supports(item)[-1]
    return f"{last.memory_id}/{modeless_item_id(item, last)}"


def _replacing(modeless_id: str) -> str:
    return f"replaces:{modeless_id}"


def _keys_of_replacing(item: Memory) -> set[str]:
    wordings: Iterable[Support] = {support.text: support for support in _supports(item)}.values()
    return {_key(item, _replacing(modeless_item_id(item, wording))) for wording in wordings}


def _next_entry(claim: Claim, entry: ClaimEntry) -> ClaimEntry | None:
    later = (other for other in claim.held if other > entry and other.memory_id != entry.memory_id)
    return next((entry for entry in later if entry.may_supersede), None)


def _key(item: Memory, claim: str) -> str:
    identity = json.dumps([sorted(item.scope.items()), item.mode, claim], separators=(",", ":"))
    return hashlib.sha256(identity.encode()).hexdigest()[:32]
