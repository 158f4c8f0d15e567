"""Decay of an item's stability with age. Pure.

`stability` is the probability that an item still holds. Its initial value follows from the record: from the turn that
said it last, or, for a distilled memory, from the number of turns. So decay is never applied twice, and a repetition
resets it. Age is counted in whole days and the result rounded, so that a second run on the same day changes nothing.
"""

from datetime import datetime

from agents.rules.index.recency import HALF_LIFE_DAYS
from schemas.state.memories import Memory

STABILITY_STEP = 0.05
"""Rounding step of stability: finer steps carry no information, and each change is a write."""

MIN_STABILITY_SHARE = 0.2
"""Share of the initial stability that never decays: an item that was never revoked may hold forever."""


def rule_of_succession(times: int) -> float:
    """Return the probability that what held `times` times holds once more (Laplace, 1774)."""
    return (times + 1) / (times + 2)


def decayed_stability(memory: Memory, at: datetime) -> float | None:
    """Return an item's stability at a time; None if it differs by less than half a step, or if it is no item."""
    item = memory.item
    if item is None:
        return None
    initial = item.supports[-1].stability if item.supports else rule_of_succession(len(memory.evidence))
    days = max(0, (at - memory.occurred_at).days)
    remaining = MIN_STABILITY_SHARE + (1 - MIN_STABILITY_SHARE) * 0.5 ** (days / HALF_LIFE_DAYS[memory.decay])
    now = initial if days == 0 else _rounded(initial * remaining)
    return None if abs(now - item.stability) < STABILITY_STEP / 2 else round(now, 3)


def apply_decay(memory: Memory, at: datetime) -> Memory:
    """Set an item's stability to its value at a time."""
    stability = decayed_stability(memory, at)
    if stability is None or memory.item is None:
        return memory
    return memory.model_copy(update={"item": memory.item.model_copy(update={"stability": stability})})


def _rounded(stability: float) -> float:
    return round(stability / STABILITY_STEP) * STABILITY_STEP
