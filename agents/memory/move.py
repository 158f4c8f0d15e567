"""Move memories to other modes, by their ids or all of a mode.

Idempotent: a repeated move changes no record, and publishes again the events that a killed worker may have missed.
"""

from agents.memory.items import KeepItems, WriteStep
from agents.memory.supersede import Supersede
from agents.ports.stores import Modes
from agents.rules.items.item_merging import apart_from
from agents.rules.memory.understanding import restore_source
from agents.rules.memory.versions import move_to_mode
from agents.rules.memory.visibility import awaits_indexer, mode_visibility, with_visibility
from agents.rules.modes.declaring import ModeChoice, with_decay, with_mode_source
from schemas.internal.changes import Change
from schemas.internal.events import Remembered
from schemas.state.memories import Memory


class Move:
    """The part of `Remember` that moves memories between modes."""

    def __init__(self, modes: Modes, items: KeepItems, supersede: Supersede, *, asks_model: bool) -> None:
        """`asks_model`: a language model will be asked about turns that are not private."""
        self._modes = modes
        self._items = items
        self._supersede = supersede
        self._asks_model = asks_model

    def apply(self, memory: Memory, change: Change) -> WriteStep:
        """Move a memory as a change demands."""
        assert change.to is not None
        if not change.ids:
            return self._move((change.to, memory.mode_source), memory)
        # A turn that moves alone leaves its distilled memory; in a move of the whole mode that moves along.
        released = self._supersede.release(memory) if memory.mode != change.to else []
        restored = restore_source(memory) if released else memory
        written, events = self._move((change.to, "caller"), restored)
        if written is not None and written.origin == "extracted":
            self._items.name_apart(written)
        return written, [*released, *events]

    def into(self, mode: ModeChoice, memory: Memory) -> Memory:
        """Return the memory in another mode; writes nothing."""
        declared = self._modes.get(memory.boundary)
        moved = with_decay(move_to_mode(memory, mode), declared)
        of_mode = mode_visibility(moved, declared)
        return with_visibility(moved, memory.own_visibility, of_mode, asks_model=self._asks_model)

    def _move(self, mode: ModeChoice, memory: Memory) -> WriteStep:
        """Write a memory in a mode; if it is there already, it needs no new vector.

        A turn's items are rebuilt in its mode. An item moves alone, and stays while its turns stay in theirs.
        """
        moved = with_mode_source(mode[1], memory) if memory.mode == mode[0] else self.into(mode, memory)
        if moved.origin == "extracted":
            of_turn = memory.item.turn_mode if memory.item else None
            return self._items.put_item(apart_from(of_turn or memory.mode, moved), memory)
        moved, events = self._items.write_turn(moved, self._items.turn_supports(moved))
        learned = [self._items.learned_event(moved)] if moved.items else []
        # A memory that is there already may have been moved by this same change before a worker was killed.
        return moved, [*([Remembered(memory=moved)] if awaits_indexer(moved) else []), *events, *learned]
