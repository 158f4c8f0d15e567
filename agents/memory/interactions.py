"""Correct interaction modes by command, and count classifications and corrections by week.

Idempotent: a correction that is applied again changes no record, and a user counts once a week. Counts are written
before the record: a killed worker repeats both.
"""

from collections.abc import Iterator
from datetime import datetime

from agents.memory.items import WriteStep
from agents.memory.write_memory import WriteMemory
from agents.ports.stores import InteractionWriter, MemoryWriter
from agents.rules.interaction.stability import count_classification, count_correction, week_of, without_user
from agents.rules.memory.understanding import is_misclassified, with_correction
from agents.rules.memory.visibility import is_affected
from schemas.internal.changes import Change
from schemas.state.interaction import Interaction, InteractionCounts
from schemas.state.memories import Memory


class CountInteractions:
    """The part of `Remember` that counts classified turns and their corrections."""

    def __init__(self, counts: InteractionWriter) -> None:
        self._counts = counts

    def add_classification(self, before: Memory, interaction: Interaction | None, at: datetime) -> None:
        """Count the first classification of a turn; `before` is its record without it."""
        if interaction is not None and before.reading.interaction is None:
            counts = self._counts.get()
            self._put(counts, count_classification(counts, before.boundary, interaction.mode, week_of(at)))

    def add_correction(self, before: Memory, at: datetime) -> None:
        """Count a correction of a memory's interaction mode."""
        counts = self._counts.get()
        self._put(counts, count_correction(counts, before.boundary, week_of(at)))

    def forget(self, boundary: str) -> None:
        """Count a user no longer, as long as it is known which count is the user's."""
        counts = self._counts.get()
        self._put(counts, without_user(counts, boundary))

    def _put(self, before: InteractionCounts, after: InteractionCounts) -> None:
        if after is not before:
            self._counts.put(after)


class CorrectInteraction:
    """The part of `Remember` that corrects interaction modes."""

    def __init__(self, memories: MemoryWriter, write: WriteMemory, counts: CountInteractions) -> None:
        self._memories = memories
        self._write = write
        self._counts = counts

    def apply(self, change: Change) -> Iterator[WriteStep]:
        """Yield the corrected memory, nothing if it was forgotten meanwhile."""
        assert change.interaction_mode is not None
        assert change.at is not None
        memory = self._memories.get(change.memory_id or "")
        if memory is None or not is_affected(memory, change):
            return
        if is_misclassified(memory, change.interaction_mode):
            self._counts.add_correction(memory, change.at)
        corrected = with_correction(memory, change.interaction_mode)
        if corrected != memory:
            self._write(corrected)
        yield corrected, ()
