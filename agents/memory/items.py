"""Keeps the items that are found in turns, beside them: their records, words, and by its events their vectors.

A turn comes in with what it gives to items; what must follow leaves. An item is what its turns give to it: the same
again changes nothing, another turn adds its evidence, and one that is edited, moved or forgotten takes it back. Without
any an item is gone, and may come again; one that a user has forgotten is not made again.

A turn is written before its items, and names all that may have its evidence, those included that it gives nothing to
any more; only when these are written it names the others alone. So what a kill cut off is found and done again.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

from agents.memory.claims import ResolveClaims
from agents.memory.write_memory import WriteMemory
from agents.ports.lexical_index import LexicalWriter
from agents.ports.stores import MemoryWriter
from agents.rules.items.found import ExtractedItem
from agents.rules.items.item_merging import (
    build_item,
    is_supported_by_any,
    modeless_item_id,
    replace_supports,
    restrict_to_turn,
    support_item_id,
    supports_from_turn,
    supports_of,
)
from agents.rules.memory.embedding_status import is_in_flight
from schemas.events import Forgotten, Learned, Remembered
from schemas.memories import Memory, Support

MemoryEvent = Remembered | Forgotten | Learned
"""What others are told of a memory."""

WriteStep = tuple[Memory | None, Sequence[MemoryEvent]]
"""A memory that was changed, with what must follow; or neither, and others may have their turn."""

MAX_HOPS = 8
"""Items that took each other's place in consolidations and are followed."""


class KeepItems:
    """The part of `Remember` that keeps items."""

    def __init__(
        self, memories: MemoryWriter, words: LexicalWriter, contradict: ResolveClaims, write: WriteMemory
    ) -> None:
        self._memories = memories
        self._words = words
        self._contradict = contradict
        self._write = write

    def replace_items(self, turn: Memory, found: Iterable[ExtractedItem]) -> tuple[Memory, list[MemoryEvent]]:
        """Write a turn in which this was found, and nothing else."""
        return self.write_turn(turn, supports_of(turn, found))

    def refresh_items(self, turn: Memory, found: Iterable[ExtractedItem]) -> tuple[Memory, list[MemoryEvent]]:
        """Write a turn once more, with what it gives already and what the rules find."""
        given = self.turn_supports(turn)
        there = {support_item_id(turn, one) for one in given}
        return self.write_turn(
            turn,
            [*given, *(one for one in supports_of(turn, found) if support_item_id(turn, one) not in there)],
        )

    def turn_supports(self, turn: Memory) -> list[Support]:
        """All that a turn gives to items, by the text that stands."""
        return [one for item in self.items_of(turn) for one in supports_from_turn(item, turn)]

    def write_turn(self, turn: Memory, supports: Sequence[Support]) -> tuple[Memory, list[MemoryEvent]]:
        """Write a turn that gives this to items, and the items. Returns the turn, and what must follow beside it."""
        wanted, merged = self._wanted(turn, supports)
        stays = {*wanted, *merged}
        dropped = [one for one in turn.items if one not in stays]
        items = (*wanted, *(one for one in turn.items if one in merged and one not in wanted))
        named = turn.model_copy(update={"items": (*items, *dropped)}) if items or dropped else turn
        self._write(named)
        events = [event for one, given in wanted.items() for event in self._give(one, given, named)]
        for one in dropped:
            events += self._put_right_without(one, turn, stays)
        if dropped:
            named = named.model_copy(update={"items": items})
            self._write(named)
        return named, events

    def withdraw_supports(
        self, memory_ids: Iterable[str], turns: Collection[str]
    ) -> Iterator[tuple[Memory, list[MemoryEvent]]]:
        """Take back what these turns give to items: a step for each item that they gave something to."""
        for memory_id in memory_ids:
            item = self._memories.get(memory_id)
            if item is not None and is_supported_by_any(item, turns):
                yield item, self._without(item, turns)

    def put_item(self, item: Memory, before: Memory | None) -> tuple[Memory, list[MemoryEvent]]:
        """Write an item as it is to be, with what took its place."""
        written, others = self._contradict.resolve(before, item)
        self._write(written)
        told = self._told(others)
        return written, [*([Remembered(memory=written)] if is_in_flight(written) else []), *told]

    def forget_item(self, item: Memory) -> list[MemoryEvent]:
        """Leave marks in place of an item, so that it is made again in no mode; its turns no longer name it."""
        marks = {modeless_item_id(item, support) for support in (item.item.supports if item.item else ())}
        # What stands for it first: it is found by the item alone, when all of this is done again.
        over = self._taken_from_successor(item, marks)
        others = self._contradict.withdraw(item)
        for mark in sorted(marks):
            self._memories.forget(mark)
        for turn in self.turns_of(item):
            left = tuple(one for one in turn.items if one != item.memory_id)
            self._write(turn.model_copy(update={"items": left}))
        place = item.embedding.place
        self._words.remove(item.memory_id)
        self._memories.forget(item.memory_id, place)
        turns = [self.learned_event(turn) for turn in self.turns_of(item)]
        return [forgotten_event(item), *over, *turns, *self._told(others)]

    def items_of(self, turn: Memory) -> list[Memory]:
        """The items that a turn names and that are there."""
        known = [self._memories.get(one) for one in turn.items]
        return [item for item in known if item is not None]

    def turns_of(self, item: Memory) -> list[Memory]:
        """The turns that an item rests on and that are there."""
        ids = dict.fromkeys(one.memory_id for one in (item.item.supports if item.item else ()))
        known = [self._memories.get(one) for one in ids]
        return [turn for turn in known if turn is not None]

    def learned_event(self, turn: Memory) -> Learned:
        """All that rests on a turn as it is now."""
        return Learned(
            memory_id=turn.memory_id,
            scope=turn.scope,
            memory=turn,
            items=tuple(restrict_to_turn(item, turn) for item in self.items_of(turn)),
            update=turn.reading.aims,
        )

    def _wanted(self, turn: Memory, supports: Sequence[Support]) -> tuple[dict[str, list[Support]], set[str]]:
        """What a turn gives to each item, nothing to one that was forgotten; and the items that others stand for."""
        wanted: dict[str, list[Support]] = {}
        merged = set()
        for one in supports:
            if not self._memories.is_forgotten(modeless_item_id(turn, one)):
                found = support_item_id(turn, one)
                stands = self._standing_for(found)
                wanted.setdefault(stands, []).append(one)
                if stands != found:
                    merged.add(found)
        return wanted, merged

    def _standing_for(self, memory_id: str) -> str:
        """The item that a consolidation has put in the place of one."""
        for _ in range(MAX_HOPS):
            item = self._memories.get(memory_id)
            if item is None or item.superseded_in is None or item.superseded_by is None:
                break
            memory_id = item.superseded_by
        return memory_id

    def _give(self, memory_id: str, given: Sequence[Support], turn: Memory) -> list[MemoryEvent]:
        before = self._memories.get(memory_id)
        supports = replace_supports(before, (turn.memory_id,), given)
        return self.put_item(self._made(memory_id, supports, turn, before), before)[1]

    def _without(self, item: Memory, turns: Collection[str]) -> list[MemoryEvent]:
        """An item without what these turns give to it; one that nothing is given to goes."""
        return self._left_with(item, replace_supports(item, turns))

    def _taken_from_successor(self, item: Memory, marks: Collection[str]) -> list[MemoryEvent]:
        """What a consolidation has put in the place of an item no longer says what is forgotten by these marks."""
        by = item.superseded_by if item.superseded_in is not None else None
        over = None if by is None else self._memories.get(by)
        if over is None or over.item is None:
            return []
        left = tuple(one for one in over.item.supports if modeless_item_id(over, one) not in marks)
        events = self._taken_from_successor(over, marks)
        if left != over.item.supports:
            events += self._left_with(over, left)
            still = {one.memory_id for one in left}
            for turn in self.turns_of(over):
                if turn.memory_id not in still:
                    named = tuple(one for one in turn.items if one != over.memory_id)
                    self._write(turn.model_copy(update={"items": named}))
            events += [self.learned_event(turn) for turn in self.turns_of(over)]
        return events

    def _left_with(self, item: Memory, supports: Sequence[Support]) -> list[MemoryEvent]:
        """An item to which this and nothing else is given."""
        if supports:
            return self.put_item(self._made(item.memory_id, supports, item, item), item)[1]
        others = self._contradict.withdraw(item)
        self._words.remove(item.memory_id)
        self._memories.remove(item.memory_id, item.embedding.place)
        return [forgotten_event(item), *self._told(others)]

    def _put_right_without(self, memory_id: str, turn: Memory, stays: Collection[str]) -> list[MemoryEvent]:
        """An item that is not to have evidence of a turn any more; told of also where it was written before a kill."""
        item = self._memories.get(memory_id)
        if item is None:
            self._words.remove(memory_id)
            return [Forgotten.last_in(memory_id, self._memories.last_place(memory_id))]
        events = self._without(item, (turn.memory_id,)) if is_supported_by_any(item, (turn.memory_id,)) else []
        over = item.superseded_by if item.superseded_in is not None else None
        if over is not None and over not in stays:
            # A consolidation has given this evidence to another.
            events += self._put_right_without(over, turn, stays)
        return events

    def _made(self, memory_id: str, supports: Sequence[Support], turn: Memory, before: Memory | None) -> Memory:
        """The record of an item. Where the turn that supports it last is gone, what is known of it stays."""
        last = supports[-1].memory_id
        lead = turn if turn.memory_id == last else self._memories.get(last)
        return build_item(memory_id, supports, lead or before or turn, before)

    def _told(self, items: Sequence[Memory]) -> list[MemoryEvent]:
        """What is said of the turns that these items rest on last: one of them is replaced now, or stands again."""
        last = dict.fromkeys(item.item.supports[-1].memory_id for item in items if item.item and item.item.supports)
        turns = [self._memories.get(one) for one in last]
        return [self.learned_event(turn) for turn in turns if turn is not None]


def forgotten_event(memory: Memory) -> Forgotten:
    """What is said of a memory that is no more."""
    return Forgotten.last_in(memory.memory_id, memory.embedding.place)
