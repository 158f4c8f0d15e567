"""Store the items that are found in turns: records, index entries, and by events their vectors.

Enters: a turn with its supports (what it contributes to items). Leaves: the events that must follow. An item is derived
from its supports: a repeated turn changes nothing, another turn adds support, and an edited, moved or forgotten turn
withdraws its own. An item without support is removed and may be found again; an item that a user has forgotten is not
made again.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agents.memory.write_memory import Slices, WriteMemory, finish
from agents.ports.indexes import LexicalWriter
from agents.ports.stores import ClaimWriter, MemoryWriter, Modes
from agents.rules.items.claims import (
    apply_successor,
    claims_of,
    keys_of_successor,
    preceding_item_ids,
    successor,
    turns_of_replaced,
    update_claim,
)
from agents.rules.items.extracting import ExtractedItem
from agents.rules.items.item_merging import (
    ItemDiff,
    apart_from,
    build_item,
    diff_items,
    forgotten_by,
    is_supported_by_any,
    item_mode,
    modeless_ids,
    modeless_item_id,
    replace_supports,
    restrict_to_turn,
    support_item_id,
    supports_from_turn,
    supports_of,
    tombstones_of,
)
from agents.rules.memory.visibility import awaits_indexer, mode_visibility, with_visibility
from agents.rules.modes.declaring import mode_after_answer, with_decay
from schemas.internal.events import Forgotten, Learned, Released, Remembered
from schemas.scopes import PROJECT_FIELD
from schemas.state.memories import Claim, Memory, Support


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResolveClaims:
    """The part of `Remember` that resolves contradicting items: the latest statement replaces the others.

    That holds in whatever order turns arrive. Write order: the items with another successor than before, the table
    `claims`, then the item itself (by the caller), so that a redelivery repeats interrupted work.
    """

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
        stored = {key: self.claims.get(key) for key in {**old, **new}}
        now = {key: update_claim(claim, changed_id, new.get(key)) for key, claim in stored.items()}
        # Not as they are stored: a kill may have left the claims of after this write, and other items of before it.
        held = {key: update_claim(stored[key], changed_id, entry) for key, entry in old.items()}
        others = dict.fromkeys(
            (
                *self._replaced_items(before),
                *self._replaced_items(after),
                *(
                    other
                    for rows in (held, now)
                    for row in rows.values()
                    for other in preceding_item_ids(row, changed_id)
                ),
            )
        )
        changed = [item for other in others if (item := self._write_successor(other, now, after)) is not None]
        for key, claim in now.items():
            if claim != stored[key]:
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


MemoryEvent = Remembered | Forgotten | Released | Learned
"""The events to publish after a memory is written."""

WriteStep = tuple[Memory | None, Sequence[MemoryEvent]]
"""A changed memory with the events that must follow; `(None, ())` as a place to pause."""

WrittenTurn = tuple[Memory, list[MemoryEvent]]
"""A turn as written, and the events that its items need."""

MAX_HOPS = 8
"""Merges that are followed from an item to the item that replaces it."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KeepItems:
    """The part of `Remember` that stores items."""

    memories: MemoryWriter
    words: LexicalWriter
    modes: Modes
    claims: ResolveClaims
    write: WriteMemory

    def refresh_items(self, turn: Memory, extracted: Iterable[ExtractedItem]) -> Slices[WrittenTurn]:
        """Rewrite the turn with its current supports, adding those of these items that are new."""
        return self.write_in_slices(turn, self.supports_after(turn, extracted, keeps=True))

    def supports_after(self, turn: Memory, extracted: Iterable[ExtractedItem], *, keeps: bool) -> list[Support]:
        """Return the supports for these items; with `keeps` the current ones, and those for new items."""
        if not keeps:
            return supports_of(turn, extracted)
        current = self.turn_supports(turn)
        # Without modes: what a model has found in another register is no new item of the rules in the turn's own.
        current_ids = {item_id for support in current for item_id in modeless_ids(turn, support)}
        added = (
            support for support in supports_of(turn, extracted) if modeless_item_id(turn, support) not in current_ids
        )
        return [*current, *added]

    def diff(self, turn: Memory, supports: Sequence[Support]) -> ItemDiff:
        """Return the changes that follow from writing the turn with these supports."""
        supports_by_item, merged = self._group_supports(turn, supports)
        given = [(item_id, self.memories.get(item_id), some) for item_id, some in supports_by_item.items()]
        dropped = [self.memories.get(item_id) for item_id in turn.items if item_id not in {*supports_by_item, *merged}]
        return diff_items(turn, given, [item for item in dropped if item is not None])

    def turn_supports(self, turn: Memory) -> list[Support]:
        """Return all supports by the turn's current text."""
        return [support for item in self.items_of(turn) for support in supports_from_turn(item, turn)]

    def write_turn(self, turn: Memory, supports: Sequence[Support]) -> WrittenTurn:
        return finish(self.write_in_slices(turn, supports))

    def write_in_slices(self, turn: Memory, supports: Sequence[Support]) -> Slices[WrittenTurn]:
        """Write a turn with these supports, and its items. Returns the turn, and the events that its items need.

        The turn is written before the first pause, each item between two of them; none if the turn is forgotten.
        """
        supports_by_item, merged = self._group_supports(turn, supports)
        remaining = {*supports_by_item, *merged}
        dropped = [item_id for item_id in turn.items if item_id not in remaining]
        items = (
            *supports_by_item,
            *(item_id for item_id in turn.items if item_id in merged and item_id not in supports_by_item),
        )
        written = turn.model_copy(update={"items": (*items, *dropped)}) if items or dropped else turn
        if any(item_mode(turn, support) != turn.mode for support in supports):
            written = written.model_copy(update={"items_apart": True})
        # Before its items, with all that may hold its support, withdrawn ones included; when these are written, it is
        # written again with the remaining ones. So a redelivery finds and repeats interrupted work.
        self.write(written)
        events: list[MemoryEvent] = []
        for item_id, given in supports_by_item.items():
            events += self._support(item_id, given, written)
            # A page has more than a hundred items.
            yield
        for item_id in dropped:
            events += self._repair_dropped(item_id, turn, remaining)
            yield
        if not items and not dropped:
            # No pause was made: nothing else can have written the turn.
            return written, events
        return self._without_dropped(written, dropped), events

    def _without_dropped(self, written: Memory, dropped: Collection[str]) -> Memory:
        """Write the turn without the items that it has no more; return its current record."""
        current = self.memories.get(written.memory_id)
        if current is None or not dropped:
            return current or written
        left = current.model_copy(
            update={"items": tuple(item_id for item_id in current.items if item_id not in dropped)}
        )
        self.write(left)
        return left

    def withdraw_supports(
        self, memory_ids: Iterable[str], turns: Collection[str]
    ) -> Iterator[tuple[Memory, list[MemoryEvent]]]:
        """Withdraw the supports of these turns: a step for each item that has one."""
        for memory_id in memory_ids:
            item = self.memories.get(memory_id)
            if item is not None and is_supported_by_any(item, turns):
                yield item, self._rebuild(item, replace_supports(item, turns))

    def put_item(self, item: Memory, before: Memory | None) -> tuple[Memory, list[MemoryEvent]]:
        """Write an item with its successor."""
        written, others = self.claims.resolve(before, item)
        self.write(written)
        learned = self._learned_of(others)
        return written, [*([Remembered(memory=written)] if awaits_indexer(written) else []), *learned]

    def name_apart(self, item: Memory) -> None:
        """Note on the turns of an item that it is in another mode than they are."""
        for turn in self.turns_of(item):
            if turn.mode != item.mode and not turn.items_apart:
                self.write(turn.model_copy(update={"items_apart": True}))

    def forget_item(self, item: Memory) -> list[MemoryEvent]:
        """Replace an item by tombstones, so that it is not made again in any mode; its turns no longer name it."""
        supports = item.item.supports if item.item else ()
        tombstones = {item_id for support in supports for item_id in tombstones_of(item, support)}
        # The item that replaces it first: on redelivery it is found through this item alone.
        successor_events = self._withdraw_from_successor(item, tombstones)
        others = self.claims.withdraw(item)
        for tombstone in sorted(tombstones):
            self.memories.forget(tombstone)
        for turn in self.turns_of(item):
            left = tuple(item_id for item_id in turn.items if item_id != item.memory_id)
            self.write(turn.model_copy(update={"items": left}))
        place = item.embedding.place
        self.words.remove(item.memory_id)
        self.memories.forget(item.memory_id, place)
        turns = [self.learned_event(turn) for turn in self.turns_of(item)]
        return [forgotten_event(item), *successor_events, *turns, *self._learned_of(others)]

    def items_of(self, turn: Memory) -> list[Memory]:
        items = [self.memories.get(item_id) for item_id in turn.items]
        return [item for item in items if item is not None]

    def turns_of(self, item: Memory) -> list[Memory]:
        ids = dict.fromkeys(support.memory_id for support in (item.item.supports if item.item else ()))
        turns = [self.memories.get(turn_id) for turn_id in ids]
        return [turn for turn in turns if turn is not None]

    def learned_event(self, turn: Memory) -> Learned:
        """Return the event that has everything derived from a turn refreshed."""
        return Learned(
            memory_id=turn.memory_id,
            scope=turn.scope,
            memory=turn,
            items=tuple(restrict_to_turn(item, turn) for item in self.items_of(turn)),
            update=turn.reading.aims,
        )

    def _group_supports(self, turn: Memory, supports: Sequence[Support]) -> tuple[dict[str, list[Support]], set[str]]:
        """Group supports by current item, without forgotten ones; also return the items that were merged into these."""
        supports_by_item: dict[str, list[Support]] = {}
        merged = set()
        for support in supports:
            if not self._is_forgotten(turn, support):
                item_id = support_item_id(turn, support)
                current_id = self._follow_merges(item_id)
                supports_by_item.setdefault(current_id, []).append(support)
                if current_id != item_id:
                    merged.add(item_id)
        return supports_by_item, merged

    def _is_forgotten(self, turn: Memory, support: Support) -> bool:
        return any(self.memories.is_forgotten(item_id) for item_id in forgotten_by(turn, support))

    def _follow_merges(self, memory_id: str) -> str:
        """Return the item that an item was merged into; its own id if it was not."""
        for _ in range(MAX_HOPS):
            item = self.memories.get(memory_id)
            if item is None or item.superseded_in is None or item.superseded_by is None:
                break
            memory_id = item.superseded_by
        return memory_id

    def _support(self, memory_id: str, given: Sequence[Support], turn: Memory) -> list[MemoryEvent]:
        """Give an item its supports by a turn, unless turn or item was forgotten in the meantime."""
        given = [support for support in given if not self._is_forgotten(turn, support)]
        # By the index: a large turn's row is read as a whole.
        if not given or not self.words.has(turn.memory_id):
            return []
        current_id = self._follow_merges(memory_id)
        if current_id != memory_id:
            memory_id = current_id
            # The turn names the item before it supports it.
            current = self.memories.get(turn.memory_id)
            if current is not None and memory_id not in current.items:
                self.write(current.model_copy(update={"items": (*current.items, memory_id)}))
        before = self.memories.get(memory_id)
        supports = replace_supports(before, (turn.memory_id,), given)
        return self.put_item(self._build(memory_id, supports, turn, before), before)[1]

    def _withdraw_from_successor(self, item: Memory, tombstones: Collection[str]) -> list[MemoryEvent]:
        """Remove the supports that these tombstones forget from the item that an item was merged into."""
        successor_id = item.superseded_by if item.superseded_in is not None else None
        successor = None if successor_id is None else self.memories.get(successor_id)
        if successor is None or successor.item is None:
            return []
        remaining = tuple(
            support for support in successor.item.supports if modeless_item_id(successor, support) not in tombstones
        )
        events = self._withdraw_from_successor(successor, tombstones)
        if remaining != successor.item.supports:
            events += self._rebuild(successor, remaining)
            supporting = {support.memory_id for support in remaining}
            for turn in self.turns_of(successor):
                if turn.memory_id not in supporting:
                    items = tuple(item_id for item_id in turn.items if item_id != successor.memory_id)
                    self.write(turn.model_copy(update={"items": items}))
            events += [self.learned_event(turn) for turn in self.turns_of(successor)]
        return events

    def _rebuild(self, item: Memory, supports: Sequence[Support]) -> list[MemoryEvent]:
        """Rebuild an item from exactly these supports; remove it if there are none."""
        if supports:
            return self.put_item(self._build(item.memory_id, supports, item, item), item)[1]
        others = self.claims.withdraw(item)
        self.words.remove(item.memory_id)
        self.memories.remove(item.memory_id, item.embedding.place)
        return [forgotten_event(item), *self._learned_of(others)]

    def _repair_dropped(self, memory_id: str, turn: Memory, remaining: Collection[str]) -> list[MemoryEvent]:
        """Withdraw a turn's support from a dropped item; repeats the event of an item that is removed already."""
        item = self.memories.get(memory_id)
        if item is None:
            self.words.remove(memory_id)
            return [Forgotten.last_in(memory_id, self.memories.last_place(memory_id))]
        turns = (turn.memory_id,)
        events = self._rebuild(item, replace_supports(item, turns)) if is_supported_by_any(item, turns) else []
        successor_id = item.superseded_by if item.superseded_in is not None else None
        if successor_id is not None and successor_id not in remaining:
            # A consolidation has moved this support to another item.
            events += self._repair_dropped(successor_id, turn, remaining)
        return events

    def _build(self, memory_id: str, supports: Sequence[Support], turn: Memory, before: Memory | None) -> Memory:
        """Return an item's record. If the last supporting turn is gone, the fields of its previous record stay."""
        last_id = supports[-1].memory_id
        last = turn if turn.memory_id == last_id else self.memories.get(last_id)
        source = last or before or turn
        item = build_item(memory_id, supports, source, before)
        if before is not None:
            return item
        declared = self.modes.get(item.boundary)
        if item.mode != source.mode:
            # The mode that a model has found may be renamed or deleted since.
            mode, mode_source = mode_after_answer(source, item.mode, source.scope[PROJECT_FIELD], declared)
            item = apart_from(source.mode, item.model_copy(update={"mode": mode, "mode_source": mode_source}))
            item = with_visibility(item, item.own_visibility, mode_visibility(item, declared))
        return with_decay(item, declared)

    def _learned_of(self, items: Sequence[Memory]) -> list[MemoryEvent]:
        """Return the events of the last turns of these items, which were replaced or are current again."""
        last = dict.fromkeys(item.item.supports[-1].memory_id for item in items if item.item and item.item.supports)
        turns = [self.memories.get(turn_id) for turn_id in last]
        return [self.learned_event(turn) for turn in turns if turn is not None]


def forgotten_event(memory: Memory) -> Forgotten:
    return Forgotten.last_in(memory.memory_id, memory.embedding.place)
