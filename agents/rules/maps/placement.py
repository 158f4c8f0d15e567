"""Place new vectors among those that have a place, which stay where they are. Pure.

Enters: rows of length 1, and laid out rows with their places. Leaves: the mean place of each new row's nearest.
Guaranteed: the place of a row depends on the laid out rows alone, not on others that are placed.
"""

import numpy as np

from agents.rules.maps.knn_graph import nearest_rows
from agents.rules.maps.places import Places
from schemas.models.vectors import Matrix

PLACING_NEIGHBOURS = 5
"""Laid out neighbours whose mean place a new row gets."""


def place_among(rows: Matrix, laid_out: Matrix, places: Places) -> Places:
    """Return a place for each row. Without laid out rows it is the middle."""
    count = min(PLACING_NEIGHBOURS, len(laid_out))
    if not count or not len(rows):
        return np.zeros((len(rows), 2), np.float32)
    return np.asarray(places[nearest_rows(rows, laid_out, count).rows].mean(axis=1), np.float32)
