"""A field seen over a conversation: its best turns, and the turns beside one. Pure."""

import numpy as np

from agents.rules.columns import NOBODY, Floats, Numbers
from agents.rules.turn_order import TurnOrder

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


def best_of_each(field: Floats, talks: Numbers) -> Floats:
    """For each memory the best of its conversation; its own where it is in none."""
    best = np.full(int(talks.max(initial=NOBODY)) + 2, LOWEST)
    np.maximum.at(best, talks, field)
    return np.where(talks == NOBODY, field, best[talks])
