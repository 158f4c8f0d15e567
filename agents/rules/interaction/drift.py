"""Whether a deployment's classifications can still be trusted (seed 002, fallback rules). Pure.

The windows are those of a whole deployment, never of a user or a conversation, and hold what was judged, before any
fallback: a fallback that went into them would look like drift itself, and never end.
"""

from collections.abc import Sequence
from math import log

from schemas.interaction import INTERACTION_MODES, InteractionMode

DRIFT_WINDOW = 500
"""Classifications that are compared with as many before them; fewer always look like drift."""

MAX_DIVERGENCE = 0.1
"""Kullback-Leibler divergence, in nats, above which the mix of modes has drifted (seed 002)."""

MAX_ERROR_RATIO = 2.0
"""How many times the baseline's error rate is too much (seed 002)."""

MIN_ERRORS = 5
"""Errors below which no rate is alarming: one correction among ten turns says nothing."""

_UNSEEN = 0.5
"""Added to each count (Jeffreys' prior), so that a mode that was never seen before does not make it infinite."""


def has_drifted(recent: Sequence[InteractionMode], before: Sequence[InteractionMode]) -> bool:
    """Whether the last `DRIFT_WINDOW` classifications are distributed otherwise than the `DRIFT_WINDOW` before them.

    Both are oldest first. False while either holds fewer.
    """
    if len(recent) < DRIFT_WINDOW or len(before) < DRIFT_WINDOW:
        return False
    return kl_divergence(recent[-DRIFT_WINDOW:], before[-DRIFT_WINDOW:]) > MAX_DIVERGENCE


def kl_divergence(recent: Sequence[InteractionMode], before: Sequence[InteractionMode]) -> float:
    """Kullback-Leibler divergence of the recent mix from the one before, in nats; 0 for two empty ones."""
    pairs = zip(_shares(recent), _shares(before), strict=True)
    return sum(now * log(now / then) for now, then in pairs)


def has_error_spike(recent_errors: int, recent: int, baseline_errors: int, baseline: int) -> bool:
    """Whether the recent share of errors is above `MAX_ERROR_RATIO` times the baseline's, over counts of classifications.

    False below `MIN_ERRORS` recent errors, and while there is no baseline.
    """
    if recent_errors < MIN_ERRORS or recent <= 0 or baseline <= 0:
        return False
    return recent_errors / recent > MAX_ERROR_RATIO * baseline_errors / baseline


def _shares(modes: Sequence[InteractionMode]) -> list[float]:
    whole = len(modes) + _UNSEEN * len(INTERACTION_MODES)
    return [(modes.count(mode) + _UNSEEN) / whole for mode in INTERACTION_MODES]
