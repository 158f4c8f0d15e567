"""Write a memory to the lexical index and the table, in the order in which a crash between the two is recoverable."""

from dataclasses import dataclass

from agents.ports.lexical_index import LexicalWriter
from agents.ports.stores import MemoryWriter
from agents.rules.index.lexical_document import LexicalDocument
from schemas.failures import RowTooLarge
from schemas.state.memories import Memory


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
