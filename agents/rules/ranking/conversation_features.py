"""A field seen over a conversation: its best turns, and the turns beside one. Pure."""

import numpy as np

from agents.rules.index.columns import MISSING, FloatArray, IntArray
from agents.rules.index.turn_order import TurnOrder

MIN_SCALED_SCORE = -9.0
"""Below every scaled field."""


def shift_turns(numbers: IntArray, order: TurnOrder, step: int) -> IntArray:
    """The turn so many places after each (before, for a negative step); `MISSING` where there is none."""
    towards = order.after if step > 0 else order.before
    found = numbers
    for _ in range(abs(step)):
        found = np.where(found == MISSING, MISSING, towards[found])
    return found


def take_or_zero(field: FloatArray, numbers: IntArray) -> FloatArray:
    """The field of these memories; 0 for `MISSING`."""
    return np.where(numbers == MISSING, 0.0, field[numbers])


def conversation_best(field: FloatArray, conversations: IntArray, numbers: IntArray) -> FloatArray:
    """For each of these memories the best of its conversation; its own where it is in none."""
    asked = conversations[numbers]
    # Only conversations of which something is asked: others may have fifty thousand turns.
    wanted = np.zeros(int(conversations.max(initial=MISSING)) + 2, np.bool_)
    wanted[asked] = True
    members = np.flatnonzero(wanted[conversations])
    best = np.full(len(wanted), MIN_SCALED_SCORE)
    np.maximum.at(best, conversations[members], field[members])
    return np.where(asked == MISSING, field[numbers], best[asked])


def last_positions(order: TurnOrder, conversations: IntArray) -> IntArray:
    """The position of the last turn of each of these conversations; 0 for `MISSING`."""
    different, places = np.unique(conversations, return_inverse=True)
    lasts = [order.lasts.get(talk, MISSING) for talk in different.tolist()]
    found: IntArray = np.array([0 if last == MISSING else order.positions[last] for last in lasts], np.int64)[places]
    return found
