"""Apply the results of consolidations: a distilled memory supersedes its turns, an item supersedes its duplicates.

Every turn must still be as it was distilled, and current; otherwise nothing is written, and what a killed worker left
half done is withdrawn. Idempotent.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from agents.memory.items import KeepItems, MemoryEvent
from agents.memory.write_memory import WriteMemory
from agents.ports.indexes import LexicalWriter
from agents.ports.stores import MemoryWriter
from agents.rules.items.item_merging import build_item, replace_supports
from agents.rules.memory.embedding_status import is_in_flight
from agents.rules.memory.understanding import (
    SupersedeState,
    can_supersede,
    restore_source,
    supersede_source,
    supersede_state,
)
from schemas.internal.consolidation import Distilled, ItemsMerged
from schemas.internal.events import Forgotten, Learned, Remembered
from schemas.state.memories import Memory


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Supersede:
    """The part of `Remember` that applies `Distilled` and `ItemsMerged`."""

    memories: MemoryWriter
    words: LexicalWriter
    items: KeepItems
    write: WriteMemory

    def state_of(self, event: Distilled) -> SupersedeState:
        """Return whether a distilled memory is due, done or refused."""
        memory_id = event.memory.memory_id
        if self.memories.is_forgotten(memory_id):
            return "refused"
        return supersede_state(event, self.memories.get(memory_id), self._sources(event))

    def apply_distilled(self, event: Distilled) -> list[MemoryEvent]:
        """Write a distilled memory and supersede its turns; return the events that must follow."""
        known = self.memories.get(event.memory.memory_id)
        if self.state_of(event) == "refused":
            if known is None:
                return self._removed_events(event.memory.memory_id, event.memory.scope)
            is_half_done = known.item is not None and known.item.run == event.run
            return self.withdraw(known, event.sources) if is_half_done else []
        memory = known or event.memory
        if known is None:
            # Before its turns are superseded: a crash between the two leaves all of them visible.
            self.write(memory)
        for source in self._sources(event):
            # After a kill some are superseded: the changelog may have had the first rows of a commit.
            if source is not None and source.superseded_by is None:
                self.write(supersede_source(source, event))
        return [Remembered(memory=memory)] if memory.embedding.status == "pending" else []

    def apply_merge(self, event: ItemsMerged) -> list[MemoryEvent]:
        """Lower an item's stability, or merge it into an older item of the same content."""
        item = self.memories.get(event.memory_id)
        if item is None or item.item is None or item.content_hash != event.content_hash:
            return []
        if item.superseded_by is not None:
            return self._repeat_merge(item, event)
        if event.into is not None:
            older = self.memories.get(event.into)
            return [] if older is None or not can_supersede(item, older) else self._merge(item, older, event)
        if event.stability is not None:
            fading = item.item.model_copy(update={"stability": event.stability})
            self.memories.put(item.model_copy(update={"item": fading}))
        return []

    def _merge(self, item: Memory, older: Memory, event: ItemsMerged) -> list[MemoryEvent]:
        """Write in this order: the older item with all supports, the turns that name it, the superseded item."""
        supports = replace_supports(older, (), item.item.supports if item.item else ())
        last = self.memories.get(supports[-1].memory_id)
        merged = build_item(older.memory_id, supports, last or older, older)
        written, events = self.items.put_item(merged, older)
        for turn in self.items.turns_of(item):
            if written.memory_id not in turn.items:
                self.write(turn.model_copy(update={"items": (*turn.items, written.memory_id)}))
        superseded = item.model_copy(update={"superseded_by": written.memory_id, "superseded_in": event.run})
        # By `put_item`, so that its claims pass to the older item.
        events += self.items.put_item(superseded, item)[1]
        return [*events, *map(self.items.learned_event, self.items.turns_of(item))]

    def _repeat_merge(self, item: Memory, event: ItemsMerged) -> list[MemoryEvent]:
        """Return the events of a merge that is written: a worker may have been killed before they were published."""
        older = self.memories.get(event.into) if event.into == item.superseded_by and event.into else None
        if older is None or item.superseded_in != event.run:
            return []
        in_flight = [Remembered(memory=memory) for memory in (older, item) if is_in_flight(memory)]
        return [*in_flight, *map(self.items.learned_event, self.items.turns_of(item))]

    def release(self, turn: Memory | None) -> list[MemoryEvent]:
        """Withdraw the distilled memory of a turn before the turn's text or mode changes.

        The turn itself is written by the caller, last: until then it names the distilled memory, so that a redelivered
        event repeats interrupted work.
        """
        if turn is None or turn.superseded_by is None:
            return []
        distilled = self.memories.get(turn.superseded_by)
        if distilled is None:
            return self._removed_events(turn.superseded_by, turn.scope)
        if distilled.origin != "distilled":
            return []
        others = [quote.memory_id for quote in distilled.evidence if quote.memory_id not in (None, turn.memory_id)]
        return self.withdraw(distilled, filter(None, others))

    def withdraw(self, distilled: Memory, source_ids: Iterable[str]) -> list[MemoryEvent]:
        """Remove a distilled memory and restore its sources."""
        for memory_id in source_ids:
            source = self.memories.get(memory_id)
            if source is not None and source.superseded_by == distilled.memory_id:
                self.write(restore_source(source))
        self.memories.remove(distilled.memory_id, distilled.embedding.place)
        return self._removed_events(distilled.memory_id, distilled.scope)

    def _removed_events(self, memory_id: str, scope: dict[str, str]) -> list[MemoryEvent]:
        """Return the events of a withdrawn distilled memory; a redelivery repeats them."""
        if not self.memories.is_removed(memory_id) or self.memories.is_forgotten(memory_id):
            return []
        self.words.remove(memory_id)
        forgotten = Forgotten.last_in(memory_id, self.memories.last_place(memory_id))
        # A category's summary may quote it.
        return [forgotten, Learned(memory_id=memory_id, scope=scope)]

    def _sources(self, event: Distilled) -> list[Memory | None]:
        return [self.memories.get(memory_id) for memory_id in event.sources]
