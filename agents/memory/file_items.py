"""Assign categories to items. Idempotent: the same change again writes the same."""

from collections.abc import Iterable, Iterator

from agents.memory.write_memory import WriteMemory
from agents.ports.stores import MemoryWriter
from agents.rules.categories.assignment import merge_assignments, top_model_categories
from schemas.changes import Change
from schemas.memories import CategoryAssignment, Memory
from schemas.understanding import FoundCategory


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
