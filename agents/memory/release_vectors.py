"""Give up the vectors of the embedder that a mode had before, for all memories of the mode.

Idempotent: every memory's event is published again by a repeated change, as a killed worker may have published none.
"""

from collections.abc import Iterator

from agents.memory.affected import affected_memories
from agents.memory.items import WriteStep
from agents.memory.write_memory import WriteMemory
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.lexical_index import LexicalIndex
from agents.ports.stores import Memories
from agents.rules.memory.embedding_status import replace_held
from schemas.internal.changes import Change
from schemas.internal.events import Released


class ReleaseVectors:
    """The part of `Remember` that applies `release`."""

    def __init__(self, memories: Memories, words: LexicalIndex, write: WriteMemory, spaces: VectorSpaces) -> None:
        self._memories = memories
        self._words = words
        self._write = write
        self._spaces = spaces

    def apply(self, change: Change) -> Iterator[WriteStep]:
        """Yield each memory that has a vector, without those in other spaces than its mode's present one."""
        for memory in affected_memories(change, self._memories, self._words):
            if memory.embedding.place is None:
                continue
            if not memory.embedding.held:
                yield memory, (Released(memory=memory),)
            elif not self._spaces.has_former(memory):
                # One that waits may have the vector that is due among those that are held.
                due = self._spaces.digest(memory)
                released = replace_held(memory, tuple(one for one in memory.embedding.held if one == due))
                self._write(released)
                yield released, (Released(memory=released),)
            # Otherwise another embedder was declared since: its change decides which vectors are kept.
