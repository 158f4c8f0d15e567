"""Who stands beside whom in the conversations of one boundary, and where. Pure.

Turns stand by the time they were said, those of the same time by arrival. A turn that is added at the end of its
conversation, which is the common case, costs the same however many there are.
"""

from dataclasses import dataclass, field

import numpy as np

from agents.rules.index.columns import MISSING, ColumnArrays, IntArray


@dataclass(slots=True)
class TurnOrder:
    """By number of memory; all of shape (memories,). Superseded turns, and what is no turn, stand beside nobody.

    `before` and `after` are the numbers of the neighbours, `positions` count from 0 in each conversation. `MISSING` is
    where there is none. `lasts` is the last turn of each conversation, by the place of the conversation.
    """

    before: IntArray
    after: IntArray
    positions: IntArray
    lasts: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: ColumnArrays) -> "TurnOrder":
        """The order of all turns."""
        before, after, positions = (np.full(len(columns.live), MISSING) for _ in range(3))
        order = cls(before, after, positions)
        turns = np.flatnonzero(columns.live & ~columns.superseded & (columns.conversations != MISSING))
        turns = turns[np.lexsort((columns.source[turns], columns.occurred_ms[turns], columns.conversations[turns]))]
        talks = columns.conversations[turns]
        starts = np.flatnonzero(np.diff(talks, prepend=MISSING))
        first, second = turns[:-1], turns[1:]
        together = talks[:-1] == talks[1:]
        order.after[first[together]] = second[together]
        order.before[second[together]] = first[together]
        order.positions[turns] = np.arange(len(turns)) - np.repeat(starts, np.diff(starts, append=len(turns)))
        ends = np.append(starts[1:], len(turns))[: len(starts)] - 1
        order.lasts = dict(zip(talks[ends].tolist(), turns[ends].tolist(), strict=True))
        return order

    def append(self, number: int, columns: ColumnArrays) -> bool:
        """Add a new turn that is in the columns; False, and nothing is changed, where it is not the last one."""
        talk = int(columns.conversations[number])
        if talk == MISSING or columns.superseded[number]:
            self._lengthen(len(columns.live))
            return True
        last = self.lasts.get(talk)
        if last is not None and _key(columns, last) >= _key(columns, number):
            return False
        self._lengthen(len(columns.live))
        self.lasts[talk] = number
        self.positions[number] = 0
        if last is not None:
            self.before[number], self.after[last] = last, number
            self.positions[number] = self.positions[last] + 1
        return True

    def _lengthen(self, size: int) -> None:
        more = size - len(self.before)
        if more > 0:
            self.before, self.after, self.positions = (
                np.pad(column, (0, more), constant_values=MISSING)
                for column in (self.before, self.after, self.positions)
            )


def _key(columns: ColumnArrays, number: int) -> tuple[int, int]:
    return int(columns.occurred_ms[number]), int(columns.source[number])
