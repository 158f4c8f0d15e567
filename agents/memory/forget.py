"""Forget memories and everything derived from them: records and index entries here, vectors by events.

Enters: a change. Leaves: a step for each memory, written when it is yielded; between two steps other events may be
handled. Each record is replaced by a tombstone, which is read before a turn is accepted. Items that other turns support
keep those supports; sources of a forgotten distilled memory are current again.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from agents.memory.files import KeepFiles
from agents.memory.items import KeepItems, MemoryEvent, WriteStep, forgotten_event
from agents.memory.write_memory import WriteMemory
from agents.ports.indexes import LexicalWriter
from agents.ports.stores import MemoryWriter
from agents.rules.cues.labels import has_signals
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.memory.understanding import restore_source
from agents.rules.memory.visibility import (
    is_affected,
    is_distilled_from,
    list_conversations,
    list_ids,
    list_ids_in_mode,
    list_ids_in_scope,
    list_matching_turns,
    list_superseded_ids,
)
from schemas.internal.changes import Change
from schemas.internal.events import Learned
from schemas.state.memories import Memory, all_item_index_names, turn_index_names

NO_STEP: WriteStep = (None, ())
"""Nothing was done: a place to pause."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ForgetMemories:
    """The part of `Remember` that forgets."""

    memories: MemoryWriter
    words: LexicalWriter
    items: KeepItems
    files: KeepFiles
    write: WriteMemory

    def apply(self, change: Change) -> Iterator[WriteStep]:
        """Forget the memories that a change selects, and everything derived from them.

        They are selected before the first step: memories stored between two steps come from later turns.
        """
        candidates = self._selected(change)
        item_indexes = () if change.mode is None else all_item_index_names(change.scope.boundary)
        columns = map(self.words.memory_columns, item_indexes)
        moved_items = [memory_id for indexed in columns for memory_id in list_ids_in_mode(indexed, change.mode)]
        selected: dict[str, None] = {}
        item_ids: dict[str, None] = {}
        for memory in self._read(candidates):
            if memory is not None and is_affected(memory, change):
                selected[memory.memory_id] = None
                item_ids |= dict.fromkeys(memory.items)
            yield NO_STEP
        # All at once: an item that many of them support is written once.
        yield from self.items.withdraw_supports(item_ids, selected)
        yield from self._forget(selected, selected)
        # Forget the items that were moved into a deleted mode while their turns are in another.
        for item in self._read(moved_items):
            if item is not None and is_affected(item, change):
                yield from self._forget([item.memory_id], ())
            yield NO_STEP

    def preview(self, change: Change) -> Iterator[Memory | None]:
        """Yield the memories that forgetting would remove, selected ones first; None marks a point to pause."""
        selected: dict[str, Memory] = {}
        for memory in self._read(list(self._selected(change))):
            if memory is not None and is_affected(memory, change):
                selected[memory.memory_id] = memory
                yield memory
            yield None
        removed = set(selected)
        for memory in selected.values():
            for derived in self._would_follow(memory, selected):
                if derived.memory_id not in removed:
                    removed.add(derived.memory_id)
                    yield derived
            yield None

    def _would_follow(self, memory: Memory, selected: Collection[str]) -> Iterator[Memory]:
        """Yield the memories derived only from this memory and others that are selected."""
        yield from self._distilled_from(memory)
        for item in filter(None, self._read(memory.items)):
            if item.item is not None and all(support.memory_id in selected for support in item.item.supports):
                yield item
        yield from (replaced for replaced in self._superseded_by(memory) if replaced.origin == "extracted")

    def _selected(self, change: Change) -> Iterable[str]:
        """Return the candidate ids: a snapshot, because the writes change the columns."""
        if change.memory_id is not None:
            return [change.memory_id]
        columns = list(map(self.words.memory_columns, turn_index_names(change.scope.boundary)))
        return chain.from_iterable([self._selected_in(indexed, change) for indexed in columns])

    def _selected_in(self, columns: MemoryColumns, change: Change) -> Iterable[str]:
        scope = change.scope.model_dump()
        if change.conversation_id is not None:
            return self._conversation(change.conversation_id, list_conversations(columns, scope))
        if change.filters is not None:
            return list_matching_turns(columns, change)
        if change.whole is not None:
            return list_ids(columns) if change.whole == "user" else list_ids_in_scope(columns, scope)
        return list_ids_in_mode(columns, change.mode)

    def _conversation(self, wanted: str, conversations: Iterable[Sequence[str]]) -> Iterator[str]:
        for turns in conversations:
            first = next(filter(None, self._read(turns)), None)
            if first is not None and first.conversation_id == wanted:
                yield from turns

    def _forget(self, memory_ids: Iterable[str], selected: Collection[str]) -> Iterator[WriteStep]:
        """Forget these by their current records: they may have been written or forgotten since they were selected."""
        for memory_id in memory_ids:
            if (current := self.memories.get(memory_id)) is not None:
                yield from self.files.forget_parts(current)
            # Derived memories before their source, which names them: so a change that is redelivered after a crash
            # still finds them. Other events may have been handled in the meantime: look until none is left.
            while (memory := self.memories.get(memory_id)) is not None:
                derived = next(self._forget_derived(memory, selected), None)
                if derived is None:
                    yield memory, self._replace_by_tombstone(memory)
                    break
                yield derived

    def _forget_derived(self, memory: Memory, selected: Collection[str]) -> Iterator[WriteStep]:
        """Forget memories derived from a memory, and forget or restore those it supersedes."""
        if memory.origin == "said":
            yield from self.items.withdraw_supports(memory.items, (memory.memory_id,))
            # The outermost first: each is found through the one that it supersedes.
            for distilled in reversed(list(self._distilled_from(memory))):
                yield from self._forget_derived(distilled, selected)
                yield distilled, self._replace_by_tombstone(distilled)
        for superseded in self._superseded_by(memory):
            if superseded.origin == "extracted":
                yield superseded, self._replace_by_tombstone(superseded)
            elif superseded.memory_id not in selected:
                restored = restore_source(superseded)
                self.write(restored)
                yield restored, ()

    def _distilled_from(self, memory: Memory) -> Iterator[Memory]:
        """Yield the distilled memory that supersedes a turn, then its own successors in order."""
        current = memory
        while current.superseded_by is not None:
            distilled = self.memories.get(current.superseded_by)
            if distilled is None or not is_distilled_from(distilled, memory):
                return
            yield distilled
            current = distilled

    def _superseded_by(self, memory: Memory) -> Iterator[Memory]:
        """Yield the memories that a consolidation replaced by this one: turns, or items of the same content."""
        if memory.origin == "distilled":
            ids: Iterable[str] = dict.fromkeys(filter(None, (quote.memory_id for quote in memory.evidence)))
        elif memory.origin == "extracted":
            columns = map(self.words.memory_columns, all_item_index_names(memory.boundary))
            ids = [memory_id for indexed in columns for memory_id in list_superseded_ids(indexed, memory.scope)]
        else:
            ids = ()
        for replaced in self._read(ids):
            if (
                replaced is not None
                and replaced.superseded_by == memory.memory_id
                and replaced.superseded_in is not None
            ):
                yield replaced

    def _replace_by_tombstone(self, memory: Memory) -> Sequence[MemoryEvent]:
        """Replace a record by a tombstone; return the events that must follow."""
        if memory.origin == "extracted":
            return self.items.forget_item(memory)
        self.words.remove(memory.memory_id)
        self.memories.forget(memory.memory_id, memory.embedding.place)
        self.files.forgotten(memory)
        # An edited turn: something may have been derived from its earlier text.
        has_derived = has_signals(memory) or memory.version > 1 or memory.origin == "distilled"
        learned = [Learned(memory_id=memory.memory_id, scope=memory.scope)] if has_derived else []
        return [forgotten_event(memory), *learned]

    def _read(self, memory_ids: Iterable[str]) -> Iterator[Memory | None]:
        return (self.memories.get(memory_id) for memory_id in memory_ids)
