"""Calibrate the classifier's confidence on cross-validated predictions, and measure how well it is calibrated."""

import numpy as np
from numpy.typing import NDArray

from agents.rules.interaction.classifier import softmax

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

TEMPERATURES = np.round(np.arange(0.5, 2.51, 0.05), 2)

BINS = 10


def best_temperature(logits: Floats, modes: Labels, weights: Floats | None = None) -> float:
    """Return the factor of the logits with the least negative log-likelihood (Guo et al. 2017)."""
    return float(min(TEMPERATURES, key=lambda one: log_loss(softmax(logits * one), modes, weights)))


def log_loss(shares: Floats, modes: Labels, weights: Floats | None = None) -> float:
    """Return the mean negative log-likelihood."""
    return float(np.average(-np.log(shares[np.arange(len(modes)), modes]), weights=weights))


def reliability(confidences: Floats, right: NDArray[np.bool_]) -> list[tuple[float, float, int, float, float]]:
    """Return for each non-empty bin: from, to, count, mean confidence, accuracy."""
    places = np.minimum((confidences * BINS).astype(int), BINS - 1)
    rows = []
    for place in range(BINS):
        inside = places == place
        if inside.any():
            mean, share = float(confidences[inside].mean()), float(right[inside].mean())
            rows.append((place / BINS, (place + 1) / BINS, int(inside.sum()), mean, share))
    return rows


def expected_error(confidences: Floats, right: NDArray[np.bool_]) -> float:
    """Return the expected calibration error over ten equal bins (Naeini et al. 2015)."""
    rows = reliability(confidences, right)
    return sum(count * abs(reported - share) for _, _, count, reported, share in rows) / len(confidences)
