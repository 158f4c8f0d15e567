"""Rules as they hold now: what was taken back is a rule of its turn no more, what a model has understood as one is.

Awaits nothing, reads few records.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np

from agents.ports.lexical_index import WordIndex
from agents.rules.context.outdated import RULING, is_outdated, marks_left
from agents.rules.context.sticky import STICKY
from agents.rules.context.visible_memories import Sight
from agents.rules.cues.labels import MARK_OF_KIND, Mark
from agents.rules.index.columns import Mask
from agents.rules.index.memory_columns import Roster
from schemas.memories import Memory, item_shelf
from schemas.vectors import Where

MOST_OUTDATED = 200
"""Items of a scope that are looked at: the latest that were taken back. Each is a record to read, some 50 us."""

MOST_TOLD = 200
"""The same of those that a model may have found."""


class RevisedRules:
    """Finds the turns of which a part was taken back, and those in which a model found a rule."""

    def __init__(
        self, words: WordIndex, record: Callable[[int, str], Memory | None], *, asks_model: bool = False
    ) -> None:
        """Take the ports; `record` reads by partition and memory id. `asks_model`: whether a model reads the turns."""
        self._words = words
        self._record = record
        self._asks_model = asks_model

    def applied(self, sight: Sight, roster: Roster, partition: int, where: Where) -> Sight:
        """The same sight, in which turns have the marks of what still holds of them."""
        said: defaultdict[str, list[Memory]] = defaultdict(list)
        for item in self._outdated(partition, where):
            for memory_id in _turns_behind(item):
                said[memory_id].append(item)
        revised: dict[int, Mark] = {}
        for memory_id, items in said.items():
            number, turn = roster.number_of.get(memory_id), self._record(partition, memory_id)
            if number is not None and turn is not None:
                revised[number] = marks_left(turn, items)
        for number, mark in self._told(roster, partition, where) if self._asks_model else ():
            revised[number] = revised.get(number, Mark(int(sight.columns.marks[number]))) | mark
        return sight.revised(revised)

    def _told(self, roster: Roster, partition: int, where: Where) -> Iterator[tuple[int, Mark]]:
        """The turns that a model has read, by number, with what the items in them are by their kind."""
        columns = self._words.roster(partition, item_shelf(where.boundary)).columns
        mask = ~columns.superseded & ((columns.marks & STICKY.value) != 0)
        for item in self._latest(mask, partition, where, MOST_TOLD):
            mark = MARK_OF_KIND.get(item.item.kind if item.item else None)
            if mark is None:
                continue
            for memory_id in _turns_behind(item):
                number, turn = roster.number_of.get(memory_id), self._record(partition, memory_id)
                if number is not None and turn is not None and turn.reading.status == "model":
                    yield number, mark

    def _outdated(self, partition: int, where: Where) -> list[Memory]:
        """The items of a read that no longer hold and once told how things are, the latest."""
        columns = self._words.roster(partition, item_shelf(where.boundary)).columns
        mask = columns.superseded & ((columns.marks & RULING.value) != 0)
        return [item for item in self._latest(mask, partition, where, MOST_OUTDATED) if is_outdated(item)]

    def _latest(self, mask: Mask, partition: int, where: Where, most: int) -> list[Memory]:
        """The latest of these items that the read may see."""
        if not mask.any():
            return []
        roster = self._words.roster(partition, item_shelf(where.boundary))
        numbers = np.flatnonzero(mask & roster.admitted(where, include_superseded=True))
        latest = numbers[np.argsort(-roster.columns.occurred_ms[numbers], kind="stable")[:most]]
        found = (self._record(partition, roster.id_of[number]) for number in latest.tolist())
        return [memory for memory in found if memory is not None]


def _turns_behind(item: Memory) -> set[str]:
    return {one.memory_id for one in item.evidence if one.memory_id}
