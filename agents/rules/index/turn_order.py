"""Neighbours and positions of the turns in the conversations of one boundary. Pure.

Turns are ordered by time, then by arrival. Appending a turn at the end of its conversation, the common case, takes
constant time.
"""

from dataclasses import dataclass, field

import numpy as np

from agents.rules.index.columns import MISSING, ColumnArrays, IntArray


@dataclass(slots=True)
class TurnOrder:
    """Arrays by number of memory, of shape (memories,); `MISSING` for superseded turns and memories that are no turns.

    `before` and `after` are the numbers of the neighbours, `MISSING` at the ends; `positions` count from 0 in each
    conversation. `last_turns` is the last turn of each conversation, by the index of the conversation.
    """

    before: IntArray
    after: IntArray
    positions: IntArray
    last_turns: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: ColumnArrays) -> "TurnOrder":
        """Order all turns."""
        before, after, positions = (np.full(len(columns.live), MISSING) for _ in range(3))
        order = cls(before, after, positions)
        turns = np.flatnonzero(columns.live & ~columns.superseded & (columns.conversations != MISSING))
        turns = turns[np.lexsort((columns.source[turns], columns.occurred_ms[turns], columns.conversations[turns]))]
        conversations = columns.conversations[turns]
        starts = np.flatnonzero(np.diff(conversations, prepend=MISSING))
        first, second = turns[:-1], turns[1:]
        is_adjacent = conversations[:-1] == conversations[1:]
        order.after[first[is_adjacent]] = second[is_adjacent]
        order.before[second[is_adjacent]] = first[is_adjacent]
        order.positions[turns] = np.arange(len(turns)) - np.repeat(starts, np.diff(starts, append=len(turns)))
        ends = np.append(starts[1:], len(turns))[: len(starts)] - 1
        order.last_turns = dict(zip(conversations[ends].tolist(), turns[ends].tolist(), strict=True))
        return order

    def append(self, number: int, columns: ColumnArrays) -> bool:
        """Append a new memory of the columns; False, without a change, if it is not the last turn."""
        conversation = int(columns.conversations[number])
        if conversation == MISSING or columns.superseded[number]:
            self._extend(len(columns.live))
            return True
        last = self.last_turns.get(conversation)
        if last is not None and _key(columns, last) >= _key(columns, number):
            return False
        self._extend(len(columns.live))
        self.last_turns[conversation] = number
        self.positions[number] = 0
        if last is not None:
            self.before[number], self.after[last] = last, number
            self.positions[number] = self.positions[last] + 1
        return True

    def _extend(self, size: int) -> None:
        missing = size - len(self.before)
        if missing > 0:
            self.before, self.after, self.positions = (
                np.pad(column, (0, missing), constant_values=MISSING)
                for column in (self.before, self.after, self.positions)
            )


def _key(columns: ColumnArrays, number: int) -> tuple[int, int]:
    return int(columns.occurred_ms[number]), int(columns.source[number])
