"""Rows are as long as 1 and point where they did; a row of zeros stays one."""

import numpy as np

from agents.rules.clustering.normalise import normalise_rows


def test_each_row_has_length_one_but_one_of_zeros() -> None:
    rows = normalise_rows(np.array([[3, 4], [0, 0], [0, -0.5]], np.float32))
    assert rows.dtype == np.float32
    assert rows.tolist() == np.array([[0.6, 0.8], [0, 0], [0, -1]], np.float32).tolist()
