"""Write a memory to the lexical index and the table, in the order in which a crash between the two is recoverable."""

from dataclasses import dataclass

from agents.ports.lexical_index import LexicalWriter
from agents.ports.stores import MemoryWriter
from agents.rules.index.lexical_document import LexicalDocument
from schemas.state.memories import Memory


@dataclass(frozen=True, slots=True)
class WriteMemory:
    """Memories in, lexical index and table written."""

    memories: MemoryWriter
    words: LexicalWriter

    def __call__(self, memory: Memory) -> None:
        """Write a memory; replaces the previous version."""
        # The index first: if it fails, the retry finds the old record and repeats the whole write.
        self.words.put(LexicalDocument(memory))
        self.memories.put(memory)
