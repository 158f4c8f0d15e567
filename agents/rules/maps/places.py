"""Places in the plane, their scale, and the alignment of two maps. Pure.

Enters: places of any scale. Leaves: places with both coordinates in -1..1.
"""

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.float32]
"""Shape (points, 2), finite."""

FILLED_SHARE = 0.95
"""Share of the square that a new map fills: what comes later has room at its edge."""


def scale_to_square(places: Places) -> Places:
    """Centre places, and scale them so that the outermost fills the share of the square."""
    if not len(places):
        return places
    centred = places - (places.max(axis=0) + places.min(axis=0)) / 2
    return np.asarray(centred * (FILLED_SHARE / _extent(centred)), np.float32)


def clip_to_square(places: Places) -> Places:
    """Return places with coordinates beyond the square on its edge."""
    return np.clip(places, -1, 1)


def align(places: Places, old_rows: NDArray[np.int64], old: Places) -> Places:
    """Move, turn, mirror and scale a map as a whole, so that some of its points lie nearest to their old places.

    `old` has the old places of the points `old_rows`. Procrustes analysis (Gower, "Generalized Procrustes analysis",
    1975). A map that is then larger than the square is made smaller.
    """
    ours = places[old_rows]
    centre, old_centre = ours.mean(axis=0), old.mean(axis=0)
    left, strengths, right = np.linalg.svd((ours - centre).T @ (old - old_centre))
    spread = float(np.square(ours - centre).sum())
    scale = float(strengths.sum()) / spread if spread else 1.0
    moved = (places - centre) @ (left @ right) * scale + old_centre
    return np.asarray(moved / max(1.0, float(np.abs(moved).max())), np.float32)


def _extent(places: Places) -> float:
    return float(np.abs(places).max()) or 1.0
