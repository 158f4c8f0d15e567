"""Writes what a consolidation has found: a distilled memory in place of its turns.

The part of `Remember` that applies `Distilled` and `ItemsMerged`. It checks again that every turn is there as it was
distilled, standing for itself; if one is not, nothing is done, and what a killed worker had left half done is taken
back. The distilled memory is written before its turns: between the two all of them are served, and none is lost. The
same event again changes nothing. What follows leaves as events.
"""

from collections.abc import Iterable

from agents.memory.items import KeepItems, MemoryEvent
from agents.memory.write_memory import WriteMemory
from agents.ports.lexical_index import LexicalWriter
from agents.ports.stores import MemoryWriter
from agents.rules.items.item_merging import build_item, replace_supports
from agents.rules.memory.embedding_status import is_in_flight
from agents.rules.memory.superseding import (
    SupersedeState,
    can_supersede,
    restore_source,
    supersede_source,
    supersede_state,
)
from schemas.consolidation import Distilled, ItemsMerged
from schemas.events import Forgotten, Learned, Remembered
from schemas.memories import Memory


class Supersede:
    """The part of `Remember` that lets one memory stand for several."""

    def __init__(self, memories: MemoryWriter, words: LexicalWriter, items: KeepItems, write: WriteMemory) -> None:
        self._memories = memories
        self._words = words
        self._items = items
        self._write = write

    def state_of(self, event: Distilled) -> SupersedeState:
        """How it stands with what was distilled."""
        memory_id = event.memory.memory_id
        if self._memories.is_forgotten(memory_id):
            return "refused"
        return supersede_state(event, self._memories.get(memory_id), self._sources(event))

    def apply_distilled(self, event: Distilled) -> list[MemoryEvent]:
        """Write a distilled memory, and that its turns are superseded; returns what must follow."""
        known = self._memories.get(event.memory.memory_id)
        if self.state_of(event) == "refused":
            if known is None:
                return self._gone(event.memory.memory_id, event.memory.scope)
            is_half_done = known.item is not None and known.item.run == event.run
            return self.withdraw(known, event.sources) if is_half_done else []
        memory = known or event.memory
        self._write(memory)
        for source in self._sources(event):
            if source is not None:
                # One that is superseded already, too: its words may be as they were when a worker was killed.
                self._write(supersede_source(source, event) if source.superseded_by is None else source)
        return [Remembered(memory=memory)] if memory.embedding.status == "pending" else []

    def apply_merge(self, event: ItemsMerged) -> list[MemoryEvent]:
        """Let an item fade, or give all that turns say of it to an older one that says the same."""
        item = self._memories.get(event.memory_id)
        if item is None or item.item is None or item.content_hash != event.content_hash:
            return []
        if item.superseded_by is not None:
            return self._merged_before(item, event)
        if event.into is not None:
            older = self._memories.get(event.into)
            return [] if older is None or not can_supersede(item, older) else self._merged(item, older, event)
        if event.stability is not None:
            fading = item.item.model_copy(update={"stability": event.stability})
            self._memories.put(item.model_copy(update={"item": fading}))
        return []

    def _merged(self, item: Memory, older: Memory, event: ItemsMerged) -> list[MemoryEvent]:
        """The older item gets what the other rests on, then the turns name it, then the other is superseded by it."""
        supports = replace_supports(older, (), item.item.supports if item.item else ())
        last = self._memories.get(supports[-1].memory_id)
        made = build_item(older.memory_id, supports, last or older, older)
        written, events = self._items.put_item(made, older)
        for turn in self._items.turns_of(item):
            if written.memory_id not in turn.items:
                self._write(turn.model_copy(update={"items": (*turn.items, written.memory_id)}))
        hidden = item.model_copy(update={"superseded_by": written.memory_id, "superseded_in": event.run})
        # Not written alone: what it claimed is claimed by the older one now.
        events += self._items.put_item(hidden, item)[1]
        return [
            *events,
            *(self._items.learned_event(turn) for turn in self._items.turns_of(item)),
        ]

    def _merged_before(self, item: Memory, event: ItemsMerged) -> list[MemoryEvent]:
        """What this very event has merged, once more: a worker may have been killed before the words were safe."""
        older = self._memories.get(event.into) if event.into == item.superseded_by and event.into else None
        if older is None or item.superseded_in != event.run:
            return []
        turns = self._items.turns_of(item)
        for memory in (*turns, older, item):
            self._write(memory)
        waiting = [Remembered(memory=memory) for memory in (older, item) if is_in_flight(memory)]
        return [*waiting, *(self._items.learned_event(turn) for turn in turns)]

    def release(self, turn: Memory | None) -> list[MemoryEvent]:
        """Take back what stands for a turn that is about to say something else, or to be somewhere else.

        The turn itself is left to whoever writes it next: until then it says what is to be taken back, so that what a
        kill cut off is done, and told, when its event comes again.
        """
        if turn is None or turn.superseded_by is None:
            return []
        over = self._memories.get(turn.superseded_by)
        if over is None:
            return self._gone(turn.superseded_by, turn.scope)
        if over.origin != "distilled":
            return []
        others = [one.memory_id for one in over.evidence if one.memory_id not in (None, turn.memory_id)]
        return self.withdraw(over, filter(None, others))

    def withdraw(self, distilled: Memory, source_ids: Iterable[str]) -> list[MemoryEvent]:
        """Remove a distilled memory, and serve again what it stood for."""
        for memory_id in source_ids:
            source = self._memories.get(memory_id)
            if source is not None and source.superseded_by == distilled.memory_id:
                self._write(restore_source(source))
        self._memories.remove(distilled.memory_id, distilled.embedding.place)
        return self._gone(distilled.memory_id, distilled.scope)

    def _gone(self, memory_id: str, scope: dict[str, str]) -> list[MemoryEvent]:
        """What is said of a distilled memory that was taken back, also where a kill kept it from being said."""
        if not self._memories.is_removed(memory_id) or self._memories.is_forgotten(memory_id):
            return []
        self._words.remove(memory_id)
        forgotten = Forgotten.last_in(memory_id, self._memories.last_place(memory_id))
        # Who sums up categories may have words of it.
        return [forgotten, Learned(memory_id=memory_id, scope=scope)]

    def _sources(self, event: Distilled) -> list[Memory | None]:
        return [self._memories.get(memory_id) for memory_id in event.sources]
