"""Give up the vectors of the embedder that a mode had before, for all memories of the mode.

Idempotent: every memory's event is published again by a repeated change, as a killed worker may have published none.
"""

from collections.abc import Iterator

from agents.memory.affected import affected_memories
from agents.memory.items import WriteStep
from agents.memory.write_memory import WriteMemory
from agents.ports.lexical_index import LexicalIndex
from agents.ports.stores import Memories
from agents.rules.memory.embedding_status import replace_held
from schemas.internal.changes import Change
from schemas.internal.events import Released


class ReleaseVectors:
    """The part of `Remember` that applies `release`."""

    def __init__(self, memories: Memories, words: LexicalIndex, write: WriteMemory) -> None:
        self._memories = memories
        self._words = words
        self._write = write

    def apply(self, change: Change) -> Iterator[WriteStep]:
        """Yield each memory that has a vector, without those in other spaces than its mode's."""
        for memory in affected_memories(change, self._memories, self._words):
            if memory.embedding.place is None:
                continue
            released = replace_held(memory)
            if released is not memory:
                self._write(released)
            yield released, (Released(memory=released),)
