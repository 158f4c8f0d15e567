"""Recency of memories by the decay of their mode. Pure."""

import numpy as np

from agents.rules.index.columns import FloatArray

HALF_LIFE_DAYS = {"fast": 7.0, "medium": 30.0, "slow": 180.0, "none": float("inf")}
"""Age at which recency is 0.5, by decay."""

DAY_MS = 86_400_000


def recency(ages_ms: FloatArray, half_lives_ms: FloatArray) -> FloatArray:
    """Return 1 / (1 + age / half-life): 1 for now, 0.5 at the half-life; old ages stay distinct."""
    recent: FloatArray = 1.0 / (1.0 + np.maximum(ages_ms, 0.0) / half_lives_ms)
    return recent
