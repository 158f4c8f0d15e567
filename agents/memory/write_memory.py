"""Write a memory to the lexical index and the table, which the partition's database commits together."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

from agents.ports.indexes import LexicalWriter
from agents.ports.stores import MemoryWriter
from agents.rules.index.lexical_document import LexicalDocument
from schemas.failures import RowTooLarge
from schemas.state.memories import Memory

# Work on memories in slices: between two of them other events may be handled.
#
# A generator that yields nothing at each place to pause, and returns its result. Whatever it changes after a pause it
# has read after that pause.

Result = TypeVar("Result")

Slices = Generator[None, None, Result]


def finish(slices: Slices[Result]) -> Result:
    """Do all slices without pausing; return the result."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: Result = end.value
            return result


@dataclass(frozen=True, slots=True)
class WriteMemory:
    """Memories in, lexical index and table written."""

    memories: MemoryWriter
    words: LexicalWriter

    def __call__(self, memory: Memory) -> None:
        """Write a memory; replaces the previous version. Raises RowTooLarge, with nothing changed."""
        # The index first: if it fails, the retry finds the old record and repeats the whole write.
        self.words.put(LexicalDocument(memory))
        try:
            self.memories.put(memory)
        except RowTooLarge:
            # Index the record that the table has, if it has one.
            stored = self.memories.get(memory.memory_id)
            if stored is None:
                self.words.remove(memory.memory_id)
            else:
                self.words.put(LexicalDocument(stored))
            raise
