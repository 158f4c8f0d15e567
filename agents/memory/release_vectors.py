"""Give up the vectors of the embedder that a mode had before, for all memories of the mode.

Idempotent: every memory's event is published again by a repeated change, as a killed worker may have published none.
"""

from collections.abc import Iterator

from agents.memory.affected import affected_memories
from agents.memory.items import WriteStep
from agents.memory.write_memory import WriteMemory
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.lexical_index import LexicalWriter
from agents.ports.stores import Memories
from agents.rules.memory.embedding_status import replace_held
from schemas.internal.changes import Change
from schemas.internal.events import Released
from schemas.state.memories import Memory


class ReleaseVectors:
    """The part of `Remember` that applies `release`."""

    def __init__(self, memories: Memories, words: LexicalWriter, write: WriteMemory, spaces: VectorSpaces) -> None:
        self._memories = memories
        self._words = words
        self._write = write
        self._spaces = spaces

    def apply(self, change: Change) -> Iterator[WriteStep]:
        """Yield each memory that has a vector, without those in other spaces than its mode's present one."""
        for memory in affected_memories(change, self._memories, self._words):
            if memory.embedding.place is None or self._is_held_again(memory):
                continue
            # The space of the vector that is due, if a memory that waits for it holds that space already.
            held = memory.embedding.held
            due = self._spaces.digest(memory) if held else None
            released = replace_held(memory, tuple(digest for digest in held if digest == due))
            if released is not memory:
                self._write(released)
            yield released, (Released(memory=released),)

    def _is_held_again(self, memory: Memory) -> bool:
        """True if another embedder was declared since: its change decides which vectors are kept."""
        return bool(memory.embedding.held) and self._spaces.has_former(memory)
