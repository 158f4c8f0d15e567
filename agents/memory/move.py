"""Move memories to other modes, one by its id or all of a mode, and file items under categories.

Idempotent: a repeated move changes no record, and publishes again the events that a killed worker may have missed.
"""

from collections.abc import Iterable, Iterator

from agents.memory.items import KeepItems, WriteStep
from agents.memory.supersede import Supersede
from agents.memory.write_memory import WriteMemory
from agents.ports.stores import MemoryWriter, Modes
from agents.rules.categories.assignment import merge_assignments, top_model_categories
from agents.rules.memory.embedding_status import is_in_flight
from agents.rules.memory.superseding import restore_source
from agents.rules.memory.versions import move_to_mode
from agents.rules.modes.declaring import ModeChoice, with_decay, with_mode_source
from schemas.internal.changes import Change
from schemas.internal.events import Remembered
from schemas.state.memories import CategoryAssignment, Memory
from schemas.state.understanding import FoundCategory


class Move:
    """The part of `Remember` that moves memories between modes."""

    def __init__(self, modes: Modes, items: KeepItems, supersede: Supersede) -> None:
        self._modes = modes
        self._items = items
        self._supersede = supersede

    def apply(self, memory: Memory, change: Change) -> WriteStep:
        """Move a memory as a change demands."""
        assert change.to is not None
        if change.memory_id is None:
            return self._move((change.to, memory.mode_source), memory)
        # A turn that moves alone leaves its distilled memory; in a move of the whole mode that moves along.
        released = self._supersede.release(memory) if memory.mode != change.to else []
        restored = restore_source(memory) if released else memory
        written, events = self._move((change.to, "caller"), restored)
        return written, [*released, *events]

    def into(self, mode: ModeChoice, memory: Memory) -> Memory:
        """Return the memory in another mode; writes nothing."""
        return with_decay(move_to_mode(memory, mode), self._modes.get(memory.boundary))

    def _move(self, mode: ModeChoice, memory: Memory) -> WriteStep:
        """Write a memory in a mode; if it is there already, it needs no new vector.

        A turn's items are rebuilt in its mode. An item moves alone, and stays while its turns stay in theirs.
        """
        moved = with_mode_source(mode[1], memory) if memory.mode == mode[0] else self.into(mode, memory)
        if moved.origin == "extracted":
            return self._items.put_item(moved, memory)
        moved, events = self._items.write_turn(moved, self._items.turn_supports(moved))
        learned = [self._items.learned_event(moved)] if moved.items else []
        # A memory that is there already may have been moved by this same change before a worker was killed.
        return moved, [*([Remembered(memory=moved)] if is_in_flight(moved) else []), *events, *learned]


class FileItems:
    """The part of `Remember` that assigns categories."""

    def __init__(self, memories: MemoryWriter, write: WriteMemory) -> None:
        self._memories = memories
        self._write = write

    def apply(self, change: Change) -> Iterator[tuple[Memory | None, tuple[()]]]:
        """Write each item that still exists in the change's scope; yields a step for each id of the change."""
        for memory_id, categories in change.assigned.items():
            memory = self._memories.get(memory_id)
            if memory is None or memory.item is None or memory.scope != change.scope.model_dump():
                yield None, ()
                continue
            yield self._assign(memory, categories), ()

    def apply_model_categories(self, items: Iterable[Memory], found: Iterable[FoundCategory]) -> None:
        """Add a language model's categories of a turn to the items that were found in it."""
        categories = top_model_categories(found)
        for memory in items if categories else ():
            if memory.item is not None:
                self._assign(memory, merge_assignments(memory.item.categories, categories))

    def _assign(self, memory: Memory, categories: tuple[CategoryAssignment, ...]) -> Memory:
        assert memory.item is not None
        updated = memory.model_copy(update={"item": memory.item.model_copy(update={"categories": categories})})
        self._write(updated)
        return updated
