"""A field seen over a conversation: its best turns, and the turns beside one. Pure."""

import numpy as np

from agents.rules.index.columns import NOBODY, Floats, Numbers
from agents.rules.index.turn_order import TurnOrder

LOWEST = -9.0
"""Below every scaled field."""


def stepped(numbers: Numbers, order: TurnOrder, step: int) -> Numbers:
    """The turn so many places after each (before, for a negative step); `NOBODY` where there is none."""
    towards = order.after if step > 0 else order.before
    found = numbers
    for _ in range(abs(step)):
        found = np.where(found == NOBODY, NOBODY, towards[found])
    return found


def at(field: Floats, numbers: Numbers) -> Floats:
    """The field of these memories; 0 for `NOBODY`."""
    return np.where(numbers == NOBODY, 0.0, field[numbers])


def best_of_each(field: Floats, talks: Numbers, numbers: Numbers) -> Floats:
    """For each of these memories the best of its conversation; its own where it is in none."""
    asked = talks[numbers]
    # Only conversations of which something is asked: others may have fifty thousand turns.
    wanted = np.zeros(int(talks.max(initial=NOBODY)) + 2, np.bool_)
    wanted[asked] = True
    members = np.flatnonzero(wanted[talks])
    best = np.full(len(wanted), LOWEST)
    np.maximum.at(best, talks[members], field[members])
    return np.where(asked == NOBODY, field[numbers], best[asked])


def last_positions(order: TurnOrder, talks: Numbers) -> Numbers:
    """The position of the last turn of each of these conversations; 0 for `NOBODY`."""
    different, places = np.unique(talks, return_inverse=True)
    lasts = [order.lasts.get(talk, NOBODY) for talk in different.tolist()]
    found: Numbers = np.array([0 if last == NOBODY else order.positions[last] for last in lasts], np.int64)[places]
    return found
