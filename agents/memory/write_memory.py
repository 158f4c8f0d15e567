"""Writes a memory: its words and its record, in the one order in which a kill between the two can be put right."""

from dataclasses import dataclass

from agents.ports.lexical_index import LexicalWriter
from agents.ports.stores import MemoryWriter
from agents.rules.index.lexical_document import LexicalDocument
from schemas.memories import Memory


@dataclass(frozen=True, slots=True)
class WriteMemory:
    """A partition and a memory in, its words and its record written over those before."""

    memories: MemoryWriter
    words: LexicalWriter

    def __call__(self, memory: Memory) -> None:
        """Write both."""
        # The words first: if they can't be written, the record says so when all of it is tried again.
        self.words.put(LexicalDocument(memory))
        self.memories.put(memory)
