"""Aggregate a field over a conversation: its maximum, and the values of neighbouring turns. Pure."""

import numpy as np

from agents.rules.index.columns import MISSING, FloatArray, IntArray
from agents.rules.index.turn_order import TurnOrder

MIN_SCALED_SCORE = -9.0
"""Less than any scaled field."""


def shift_turns(numbers: IntArray, order: TurnOrder, step: int) -> IntArray:
    """Return the turn `step` places after each turn (before, if negative), `MISSING` beyond the conversation."""
    towards = order.after if step > 0 else order.before
    found = numbers
    for _ in range(abs(step)):
        found = np.where(found == MISSING, MISSING, towards[found])
    return found


def take_or_zero(field: FloatArray, numbers: IntArray) -> FloatArray:
    """Return the field of these memories, 0 for `MISSING`."""
    return np.where(numbers == MISSING, 0.0, field[numbers])


def conversation_best(field: FloatArray, conversations: IntArray, numbers: IntArray) -> FloatArray:
    """Return the maximum over each memory's conversation; its own value if it belongs to none."""
    own = conversations[numbers]
    # Skip all other conversations: they may have fifty thousand turns.
    needed = np.zeros(int(conversations.max(initial=MISSING)) + 2, np.bool_)
    needed[own] = True
    members = np.flatnonzero(needed[conversations])
    best = np.full(len(needed), MIN_SCALED_SCORE)
    np.maximum.at(best, conversations[members], field[members])
    return np.where(own == MISSING, field[numbers], best[own])


def last_positions(order: TurnOrder, conversations: IntArray) -> IntArray:
    """Return the position of the last turn of each of these conversations, 0 for `MISSING`."""
    different, places = np.unique(conversations, return_inverse=True)
    lasts = [order.last_turns.get(conversation, MISSING) for conversation in different.tolist()]
    found: IntArray = np.array([0 if last == MISSING else order.positions[last] for last in lasts], np.int64)[places]
    return found
