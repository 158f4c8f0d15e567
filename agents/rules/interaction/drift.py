"""Drift detection for a deployment's interaction classifications. Pure.

Windows cover the whole deployment, never one user or conversation, and hold classifications before any fallback: a
fallback would look like drift itself, and never end.
"""

from collections.abc import Sequence
from math import log

from schemas.interaction import INTERACTION_MODES, InteractionMode

DRIFT_WINDOW = 500
"""Classifications compared with as many before them; smaller windows always look like drift."""

MAX_DIVERGENCE = 0.1
"""Kullback-Leibler divergence, in nats, above which the mix of modes has drifted."""

MAX_ERROR_RATIO = 2.0
"""Ratio to the baseline's error rate above which errors have spiked."""

MIN_ERRORS = 5
"""Errors below which no rate is alarming: one correction among ten turns is noise."""

_PSEUDOCOUNT = 0.5
"""Added to each count (Jeffreys' prior), so that a mode without earlier occurrences gives a finite divergence."""


def has_drifted(recent: Sequence[InteractionMode], before: Sequence[InteractionMode]) -> bool:
    """True if the mix of the last `DRIFT_WINDOW` classifications differs from the last `DRIFT_WINDOW` of `before`.

    Both are oldest first. False while either holds fewer.
    """
    if len(recent) < DRIFT_WINDOW or len(before) < DRIFT_WINDOW:
        return False
    return kl_divergence(recent[-DRIFT_WINDOW:], before[-DRIFT_WINDOW:]) > MAX_DIVERGENCE


def kl_divergence(recent: Sequence[InteractionMode], before: Sequence[InteractionMode]) -> float:
    """Return the Kullback-Leibler divergence of the recent mix from the one before, in nats; 0 for two empty ones."""
    pairs = zip(_shares(recent), _shares(before), strict=True)
    return sum(now * log(now / then) for now, then in pairs)


def has_error_spike(recent_errors: int, recent: int, baseline_errors: int, baseline: int) -> bool:
    """True if the recent error rate is above `MAX_ERROR_RATIO` times the baseline's; rates are per classification.

    False below `MIN_ERRORS` recent errors, and while there is no baseline.
    """
    if recent_errors < MIN_ERRORS or recent <= 0 or baseline <= 0:
        return False
    return recent_errors / recent > MAX_ERROR_RATIO * baseline_errors / baseline


def _shares(modes: Sequence[InteractionMode]) -> list[float]:
    total = len(modes) + _PSEUDOCOUNT * len(INTERACTION_MODES)
    return [(modes.count(mode) + _PSEUDOCOUNT) / total for mode in INTERACTION_MODES]
