"""A turn's interaction mode among those of the turns before it (seed 002, smoothing). Pure.

The last three turns move the confidence a little, across the threshold only for an answer that was near it: a user does
switch from learning to debugging from one turn to the next. A confident answer is never overruled by them.
"""

from collections.abc import Sequence
from itertools import pairwise

from agents.rules.interaction.voting import MIN_MODE_CONFIDENCE, apply_threshold
from schemas.interaction import Interaction

HISTORY_TURNS = 3
"""Turns before this one that count (seed 002)."""

HISTORY_WEIGHT = 0.04
"""What three turns of the same mode add to a confidence, and three of other modes take from it.

In the labelled conversations users switch at most turns, so history says little: more of it costs more than it finds.
"""

FREQUENT_SWITCHES = 3
"""Changes within the last three turns and this one that are frequent switching: each turn another mode."""

SWITCHING_CONFIDENCE = 0.72
"""From here on an answer stands under frequent switching: above the lower half of the classifier's pool, in which
every third answer is wrong. A higher bar costs later turns two points of recall (0.85) and finds nothing."""

HIGH_CONFIDENCE = 0.85
"""From here on an answer stands under drift or many errors: nineteen of twenty such answers are right, whatever the
mix of a deployment's turns. Seed 002 makes everything GENERAL then; 1.0 here would do that to the letter."""


def smooth_interaction(now: Interaction, before: Sequence[Interaction], *, unstable: bool = False) -> Interaction:
    """The mode to act on. `before` are the turns before, oldest first; only the last three are looked at.

    `now` may be what leads, with a mode below the threshold (`interaction_judging.leading`), so that a steady
    conversation can lift it over; the answer is GENERAL below the threshold. `unstable` is a deployment whose
    classifications drift or err: then whatever is below `HIGH_CONFIDENCE` is GENERAL, and what is below
    `SWITCHING_CONFIDENCE` where the last turns switched each time.
    """
    last = before[-HISTORY_TURNS:]
    nudged = _nudged(now, last)
    bar = HIGH_CONFIDENCE if unstable else SWITCHING_CONFIDENCE if _switching(now, last) else MIN_MODE_CONFIDENCE
    if now.confidence < bar and nudged.confidence < bar:
        return Interaction(mode="GENERAL", confidence=nudged.confidence)
    return apply_threshold(nudged)


def _nudged(now: Interaction, last: Sequence[Interaction]) -> Interaction:
    """The same mode with a moved confidence; one above the threshold stays above, whatever was before."""
    if not last:
        return now
    agreeing = sum(1 if one.mode == now.mode else -1 for one in last) / HISTORY_TURNS
    lowest = min(now.confidence, MIN_MODE_CONFIDENCE)
    confidence = (
        max(lowest, now.confidence + HISTORY_WEIGHT * agreeing)
        if agreeing < 0
        else now.confidence + HISTORY_WEIGHT * agreeing
    )
    return Interaction(mode=now.mode, confidence=round(min(1.0, confidence), 4))


def _switching(now: Interaction, last: Sequence[Interaction]) -> bool:
    """Whether each of the last turns had another mode than the one before; GENERAL ones between count as none."""
    modes = [one.mode for one in (*last, now)]
    switches = sum(one != other and "GENERAL" not in (one, other) for one, other in pairwise(modes))
    return switches >= FREQUENT_SWITCHES
