"""Rows keep their direction and get length 1; a zero row stays zero."""

import numpy as np

from agents.rules.clustering.normalise import normalise_rows


def test_rows_have_unit_length_unless_zero() -> None:
    rows = normalise_rows(np.array([[3, 4], [0, 0], [0, -0.5]], np.float32))
    assert rows.dtype == np.float32
    assert rows.tolist() == np.array([[0.6, 0.8], [0, 0], [0, -1]], np.float32).tolist()
