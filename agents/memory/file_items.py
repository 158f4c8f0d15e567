"""Puts items under other categories, as a change says: records and words.

A change comes in, a step leaves for every item, each written when it is given. The same change again writes the same.
"""

from collections.abc import Iterable, Iterator

from agents.memory.write_memory import WriteMemory
from agents.ports.stores import MemoryWriter
from agents.rules.categories.assignment import merge_assignments, top_model_categories
from schemas.changes import Change
from schemas.memories import CategoryAssignment, Memory
from schemas.understanding import FoundCategory


class FileItems:
    """The part of `Remember` that puts items under categories."""

    def __init__(self, memories: MemoryWriter, write: WriteMemory) -> None:
        self._memories = memories
        self._write = write

    def apply(self, change: Change) -> Iterator[tuple[Memory | None, tuple[()]]]:
        """Write each item that is still there, and nothing where it is under these categories already."""
        for memory_id, categories in change.assigned.items():
            memory = self._memories.get(memory_id)
            if memory is None or memory.item is None or memory.scope != change.scope.model_dump():
                yield None, ()
                continue
            yield self._put_under(memory, categories), ()

    def apply_model_categories(self, items: Iterable[Memory], found: Iterable[FoundCategory]) -> None:
        """Put what was found in a turn under the categories that a language model put the turn under, too."""
        said = top_model_categories(found)
        for memory in items if said else ():
            if memory.item is not None:
                self._put_under(memory, merge_assignments(memory.item.categories, said))

    def _put_under(self, memory: Memory, categories: tuple[CategoryAssignment, ...]) -> Memory:
        assert memory.item is not None
        filed = memory.model_copy(update={"item": memory.item.model_copy(update={"categories": categories})})
        self._write(filed)
        return filed
