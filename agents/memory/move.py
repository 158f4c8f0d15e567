"""Puts memories into modes: one that a command names, or all of a mode.

The part of `Remember` that moves. A memory and the mode come in, the record as it is written and the events that must
follow leave. The same again changes nothing, and tells once more what a killed worker may not have told.
"""

from agents.memory.items import KeepItems, WriteStep
from agents.memory.supersede import Supersede
from agents.ports.stores import Modes
from agents.rules.memory.embedding_status import is_in_flight
from agents.rules.memory.superseding import restore_source
from agents.rules.memory.versions import move_to_mode
from agents.rules.modes.precedence import ModeChoice, with_decay, with_mode_source
from schemas.changes import Change
from schemas.events import Remembered
from schemas.memories import Memory


class Move:
    """MemoryWriter in, records in another mode written, events out."""

    def __init__(self, modes: Modes, items: KeepItems, supersede: Supersede) -> None:
        self._modes = modes
        self._items = items
        self._supersede = supersede

    def apply(self, memory: Memory, change: Change) -> WriteStep:
        """Put a memory where a change says."""
        assert change.to is not None
        if change.memory_id is None:
            return self._put((change.to, memory.mode_source), memory)
        # It leaves what it was distilled with; where a whole mode moves, that goes along.
        released = self._supersede.release(memory) if memory.mode != change.to else []
        alone = restore_source(memory) if released else memory
        written, events = self._put((change.to, "caller"), alone)
        return written, [*released, *events]

    def into(self, mode: ModeChoice, memory: Memory) -> Memory:
        """The memory as it is in another mode; nothing is written."""
        return with_decay(move_to_mode(memory, mode), self._modes.get(memory.boundary))

    def _put(self, mode: ModeChoice, memory: Memory) -> WriteStep:
        """Put a memory into a mode; one that is there already needs no new vector.

        A turn's items are made anew in its mode. An item goes alone, and stays there while its turns stay in theirs.
        """
        there = with_mode_source(mode[1], memory) if memory.mode == mode[0] else self.into(mode, memory)
        if there.origin == "extracted":
            return self._items.put_item(there, memory)
        there, events = self._items.write_turn(there, self._items.turn_supports(there))
        learned = [self._items.learned_event(there)] if there.items else []
        # One that is there already may have been moved by this very change, before a worker was killed.
        return there, [*([Remembered(memory=there)] if is_in_flight(there) else []), *events, *learned]
