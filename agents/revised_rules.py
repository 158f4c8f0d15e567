"""Rules as they hold now: what was taken back is a rule of its turn no more. Awaits nothing, reads few records."""

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from agents.rules.marks import Mark
from agents.rules.outdated import RULING, is_outdated, marks_left
from agents.rules.roster import Roster
from agents.rules.sight import Sight
from agents.word_port import WordIndex
from schemas.memories import Memory, item_shelf
from schemas.vectors import Where

MOST_OUTDATED = 200
"""Items of a scope that are looked at: the latest that were taken back. Each is a record to read, some 50 us."""


class RevisedRules:
    """Finds the turns of which a part was taken back."""

    def __init__(self, words: WordIndex, record: Callable[[int, str], Memory | None]) -> None:
        """Take the ports; `record` reads by partition and memory id."""
        self._words = words
        self._record = record

    def applied(self, sight: Sight, roster: Roster, partition: int, where: Where) -> Sight:
        """The same sight, in which turns have the marks of what still holds of them."""
        said: defaultdict[str, list[Memory]] = defaultdict(list)
        for item in self._outdated(partition, where):
            for memory_id in {one.memory_id for one in item.evidence if one.memory_id}:
                said[memory_id].append(item)
        revised: dict[int, Mark] = {}
        for memory_id, items in said.items():
            number, turn = roster.number_of.get(memory_id), self._record(partition, memory_id)
            if number is not None and turn is not None:
                revised[number] = marks_left(turn, items)
        return sight.revised(revised)

    def _outdated(self, partition: int, where: Where) -> list[Memory]:
        """The items of a read that no longer hold and once told how things are, the latest."""
        roster = self._words.roster(partition, item_shelf(where.boundary))
        columns = roster.columns
        mask = columns.superseded & ((columns.marks & RULING.value) != 0)
        if not mask.any():
            return []
        numbers = np.flatnonzero(mask & roster.admitted(where, include_superseded=True))
        latest = numbers[np.argsort(-columns.occurred_ms[numbers], kind="stable")[:MOST_OUTDATED]]
        found = (self._record(partition, roster.id_of[number]) for number in latest.tolist())
        return [memory for memory in found if memory is not None and is_outdated(memory)]
