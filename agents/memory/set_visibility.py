"""Set what filters memories: by their ids, or all of a mode as it is declared now.

A turn's items are rebuilt with its visibility. A distilled memory of a turn whose visibility changes alone is
withdrawn, as it has the turn's text. Idempotent: a repeated change changes no record, and publishes again the events
that a killed worker may have missed.
"""

from agents.memory.items import KeepItems, WriteStep
from agents.memory.supersede import Supersede
from agents.memory.write_memory import WriteMemory
from agents.ports.stores import Modes
from agents.rules.cues.labels import has_signals
from agents.rules.memory.embedding_status import is_in_flight, mark_stale
from agents.rules.memory.understanding import restore_source
from agents.rules.memory.visibility import awaits_indexer, mode_visibility, own_after_change, with_visibility
from schemas.internal.changes import Change
from schemas.internal.events import Remembered
from schemas.state.memories import Memory


class SetVisibility:
    """The part of `Remember` that applies `filter` and `stale`."""

    def __init__(
        self, modes: Modes, items: KeepItems, supersede: Supersede, write: WriteMemory, *, asks_model: bool
    ) -> None:
        """`asks_model`: a language model will be asked about turns that are not private."""
        self._modes = modes
        self._items = items
        self._supersede = supersede
        self._write = write
        self._asks_model = asks_model

    def apply(self, memory: Memory, change: Change) -> WriteStep:
        """Write a memory as a change demands; with `stale`, its vector is due in another space."""
        of_mode = mode_visibility(memory, self._modes.get(memory.boundary))
        updated = with_visibility(memory, own_after_change(memory, change), of_mode, asks_model=self._asks_model)
        # What is in flight is asked for again below: in the space that is due then, and after its vector was removed.
        if change.action == "stale" and updated.visibility.searchable and not is_in_flight(updated):
            updated = mark_stale(updated)
            if updated.visibility == memory.visibility:
                self._write(updated)
                return updated, ()
        if change.ids and updated != memory and (released := self._supersede.release(memory)):
            written, events = self._rewrite(restore_source(updated), memory)
            return written, [*released, *events]
        return self._rewrite(updated, memory)

    def _rewrite(self, updated: Memory, before: Memory) -> WriteStep:
        """Write a memory with its items; an item alone."""
        if updated.origin == "extracted":
            return self._items.put_item(updated, before)
        written, events = self._items.write_turn(updated, self._items.turn_supports(before))
        due = [Remembered(memory=written)] if awaits_indexer(written) else []
        has_derived = written.origin == "distilled" or written.items or has_signals(written)
        return written, [*due, *events, *([self._items.learned_event(written)] if has_derived else [])]
