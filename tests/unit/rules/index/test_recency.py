"""Recency by half-life."""

import numpy as np

from agents.rules.index.recency import recency


def test_recency_halves_at_the_half_life_and_is_smooth() -> None:
    ages = np.array([-5.0, 0.0, 10.0, 10.001, 1e9])
    values = recency(ages, np.full(5, 10.0))
    assert values[:3].tolist() == [1.0, 1.0, 0.5]
    assert 0 < values[2] - values[3] < 0.001
    assert 0 < values[4] < 0.001
    assert recency(ages, np.full(5, np.inf)).tolist() == [1.0] * 5
