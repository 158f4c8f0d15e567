"""Puts memories into modes: one that a command names, or all of a mode.

The part of `Remember` that moves. A memory and the mode come in, the record as it is written and the events that must
follow leave. The same again changes nothing, and tells once more what a killed worker may not have told.
"""

from agents.memory.items import KeepItems, Step
from agents.memory.supersede import Supersede
from agents.ports.stores import Modes
from agents.rules.memory.embedding_status import is_on_its_way
from agents.rules.memory.superseding import served_again
from agents.rules.memory.versions import moved
from agents.rules.modes.precedence import Decision, by, with_decay
from schemas.changes import Change
from schemas.events import Remembered
from schemas.memories import Memory


class Move:
    """Memories in, records in another mode written, events out."""

    def __init__(self, modes: Modes, items: KeepItems, supersede: Supersede) -> None:
        self._modes = modes
        self._items = items
        self._supersede = supersede

    def carried_out(self, memory: Memory, change: Change, partition: int) -> Step:
        """Put a memory where a change says."""
        assert change.to is not None
        if change.memory_id is None:
            return self._put((change.to, memory.mode_source), memory, partition)
        # It leaves what it was distilled with; where a whole mode moves, that goes along.
        released = self._supersede.released(memory, partition) if memory.mode != change.to else []
        alone = served_again(memory) if released else memory
        written, events = self._put((change.to, "caller"), alone, partition)
        return written, [*released, *events]

    def into(self, mode: Decision, memory: Memory, partition: int) -> Memory:
        """The memory as it is in another mode; nothing is written."""
        return with_decay(moved(memory, mode), self._modes.get(partition, memory.boundary))

    def _put(self, mode: Decision, memory: Memory, partition: int) -> Step:
        """Put a memory into a mode; one that is there already needs no new vector.

        A turn's items are made anew in its mode. An item goes alone, and stays there while its turns stay in theirs.
        """
        there = by(mode[1], memory) if memory.mode == mode[0] else self.into(mode, memory, partition)
        if there.origin == "extracted":
            return self._items.put(there, memory, partition)
        there, events = self._items.written(there, self._items.given(there, partition), partition)
        learned = [self._items.learned(there, partition)] if there.items else []
        # One that is there already may have been moved by this very change, before a worker was killed.
        return there, [*([Remembered(memory=there)] if is_on_its_way(there) else []), *events, *learned]
