"""When a later statement has changed what a turn states: of turns with superseded items. Awaits nothing."""

from datetime import datetime

from agents.ports.lexical_index import LexicalIndex
from agents.ports.stores import Memories
from agents.rules.context.visible_memories import is_contradicted
from schemas.state.memories import Memory, item_index_name


class ChangedValues:
    """Turns in, the times of the statements that replaced theirs out."""

    def __init__(self, words: LexicalIndex, memories: Memories) -> None:
        self._words = words
        self._memories = memories

    def changed_at(self, turn: Memory) -> datetime | None:
        """Return the time of the first statement that replaced one of this turn; None if all of it holds.

        A statement that is private, or that no search finds, says nothing about a turn that is neither.
        """
        superseded = (self._memories.get(item_id) for item_id in turn.items if self._is_superseded(turn, item_id))
        times = [
            item.item.valid_until
            for item in superseded
            if item is not None and is_contradicted(item) and item.item is not None and self._shows(turn, item)
        ]
        return min((time for time in times if time is not None), default=None)

    def _is_superseded(self, turn: Memory, item_id: str) -> bool:
        """Return whether the index says so: most items are current, and their records need not be read."""
        items = self._words.memory_columns(item_index_name(turn.boundary))
        number = items.number_of.get(item_id)
        return number is not None and bool(items.columns.superseded[number])

    def _shows(self, turn: Memory, item: Memory) -> bool:
        successor = None if item.superseded_by is None else self._memories.get(item.superseded_by)
        return successor is not None and (turn.visibility.private or not successor.visibility.private)
