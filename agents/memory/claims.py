"""Keeps which of the items that contradict each other stands: the one that was said last.

An item comes in as it was and as it is to be; it leaves with what took its place, and the items whose place is another
now are written. Writes the table `claims`, after those items and before the item itself, so that what was cut off is
done again. Whatever order turns come in, the end is the same.
"""

from collections.abc import Mapping

from agents.memory.write_memory import WriteMemory
from agents.ports.claims import ClaimWriter
from agents.ports.stores import MemoryWriter
from agents.rules.items.claim_resolution import apply_successor, claims_of, preceding_item_ids, successor, update_claim
from schemas.claims import Claim
from schemas.memories import Memory


class ResolveClaims:
    """The part of `Remember` that follows claims."""

    def __init__(self, memories: MemoryWriter, claims: ClaimWriter, write: WriteMemory) -> None:
        self._memories = memories
        self._claims = claims
        self._write = write

    def resolve(self, before: Memory | None, after: Memory) -> tuple[Memory, list[Memory]]:
        """An item as it is to be written, and the other items that were written because of it."""
        now, changed = self._follow(before, after)
        return self._standing(after, now), changed

    def withdraw(self, item: Memory) -> list[Memory]:
        """The items that were written because this one goes."""
        return self._follow(item, None)[1]

    def _follow(self, before: Memory | None, after: Memory | None) -> tuple[Mapping[str, Claim], list[Memory]]:
        old, new = claims_of(before), claims_of(after)
        item = after or before
        if item is None or not (old or new):
            return {}, []
        one = item.memory_id
        known = {key: self._claims.get(key) for key in {**old, **new}}
        now = {key: update_claim(claim, one, new.get(key)) for key, claim in known.items()}
        others = dict.fromkeys(
            other for claims in (known, now) for key in claims for other in preceding_item_ids(claims[key], one)
        )
        changed = [item for other in others if (item := self._put_right(other, now)) is not None]
        for key, claim in now.items():
            if claim != known[key]:
                self._claims.put(key, claim)
        return now, changed

    def _put_right(self, memory_id: str, now: Mapping[str, Claim]) -> Memory | None:
        """Write what took the place of an item, where that is another now."""
        item = self._memories.get(memory_id)
        right = None if item is None else self._standing(item, now)
        if right is None:
            return None
        # One that is right already, too: its words may be as they were when a worker was killed.
        self._write(right)
        return None if right == item else right

    def _standing(self, item: Memory, now: Mapping[str, Claim]) -> Memory:
        claims = {key: now[key] if key in now else self._claims.get(key) for key in claims_of(item)}
        return apply_successor(item, successor(item, claims))
