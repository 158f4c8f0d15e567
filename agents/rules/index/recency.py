"""How recent a memory is, by the decay of its mode. Pure."""

import numpy as np

from agents.rules.index.columns import FloatArray

HALF_LIFE_DAYS = {"fast": 7.0, "medium": 30.0, "slow": 180.0, "none": float("inf")}
"""When a memory's recency is a half, by the decay of its mode."""

DAY_MS = 86_400_000
"""Milliseconds of a day."""


def recency(ages_ms: FloatArray, half_lives_ms: FloatArray) -> FloatArray:
    """1 for now, a half after the half-life, falling as 1 / (1 + age / half-life), which still tells old from older."""
    recent: FloatArray = 1.0 / (1.0 + np.maximum(ages_ms, 0.0) / half_lives_ms)
    return recent
