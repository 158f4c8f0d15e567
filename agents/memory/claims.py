"""Resolve contradicting items: the one said last replaces the others, in whatever order turns arrive.

Enters: an item before and after a change. Leaves: the item with its successor; other items with another successor than
before are written. Write order: those items, the table `claims`, then the item itself (by the caller), so that a
redelivery repeats interrupted work.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from agents.memory.write_memory import WriteMemory
from agents.ports.stores import ClaimWriter, MemoryWriter
from agents.rules.items.claims import (
    apply_successor,
    claims_of,
    keys_of_successor,
    preceding_item_ids,
    successor,
    turns_of_replaced,
    update_claim,
)
from schemas.state.memories import Claim, Memory


@dataclass(frozen=True, slots=True)
class ResolveClaims:
    """The part of `Remember` that maintains claims."""

    memories: MemoryWriter
    claims: ClaimWriter
    write: WriteMemory

    def resolve(self, before: Memory | None, after: Memory) -> tuple[Memory, list[Memory]]:
        """Return the item with its successor, and the other items that were changed by it."""
        claims, changed = self._update_claims(before, after)
        return self._with_successor(after, claims, after), changed

    def withdraw(self, item: Memory) -> list[Memory]:
        """Withdraw a removed item's claims; return the items that were changed by it."""
        return self._update_claims(item, None)[1]

    def _update_claims(self, before: Memory | None, after: Memory | None) -> tuple[Mapping[str, Claim], list[Memory]]:
        old, new = claims_of(before), claims_of(after)
        item = after or before
        if item is None or not (old or new):
            return {}, []
        changed_id = item.memory_id
        before_by_key = {key: self.claims.get(key) for key in {**old, **new}}
        now = {key: update_claim(claim, changed_id, new.get(key)) for key, claim in before_by_key.items()}
        others = dict.fromkeys(
            (
                *self._replaced_items(before),
                *self._replaced_items(after),
                *(
                    other
                    for rows in (before_by_key, now)
                    for row in rows.values()
                    for other in preceding_item_ids(row, changed_id)
                ),
            )
        )
        changed = [item for other in others if (item := self._write_successor(other, now, after)) is not None]
        for key, claim in now.items():
            if claim != before_by_key[key]:
                self.claims.put(key, claim)
        return now, changed

    def _replaced_items(self, item: Memory | None) -> list[str]:
        """Return the items of the turns that state what an item replaces: an item has another id in another mode."""
        turns = (self.memories.get(turn_id) for turn_id in turns_of_replaced(item))
        return [memory_id for turn in turns if turn is not None for memory_id in turn.items]

    def _write_successor(self, memory_id: str, now: Mapping[str, Claim], written: Memory | None) -> Memory | None:
        """Write an item with its successor; return it if the successor has changed."""
        item = self.memories.get(memory_id)
        updated = None if item is None else self._with_successor(item, now, written)
        if updated is None or updated == item:
            return None
        self.write(updated)
        return updated

    def _with_successor(self, item: Memory, now: Mapping[str, Claim], written: Memory | None) -> Memory:
        """`written` is the item that the caller is about to write."""
        claims = {key: now[key] if key in now else self.claims.get(key) for key in keys_of_successor(item)}
        after = successor(item, claims)
        if after is None:
            return apply_successor(item, None)
        is_written = written is not None and written.memory_id == after.memory_id
        replacing = written if is_written else self.memories.get(after.memory_id)
        return apply_successor(item, after, replacing.accepted_at if replacing else None)
