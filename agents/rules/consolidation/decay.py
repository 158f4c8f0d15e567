"""How an item's stability fades with its age. Pure.

`stability` says how likely it is that something still holds. What an item began with follows from its record: from the
turn that said it last, or, for what was distilled, from how many said it. So it is never faded twice, and what is said
again is as fresh as it was. Counted in whole days and rounded, so that a second run on the same day changes nothing.
"""

from datetime import datetime

from agents.rules.index.recency import HALF_LIFE_DAYS
from schemas.memories import Memory

STABILITY_STEP = 0.05
"""To which stability is rounded: nobody tells less apart, and each change is a write."""

MIN_STABILITY_SHARE = 0.2
"""Of what it began with that is never lost: what nobody took back may hold forever."""


def rule_of_succession(times: int) -> float:
    """How likely it holds once more what held so many times: the rule of succession (Laplace, 1774)."""
    return (times + 1) / (times + 2)


def decayed_stability(memory: Memory, at: datetime) -> float | None:
    """The stability of an item at a time; None where that is what its record says, or where it does not fade."""
    item = memory.item
    if item is None:
        return None
    began = item.supports[-1].stability if item.supports else rule_of_succession(len(memory.evidence))
    days = max(0, (at - memory.occurred_at).days)
    left = MIN_STABILITY_SHARE + (1 - MIN_STABILITY_SHARE) * 0.5 ** (days / HALF_LIFE_DAYS[memory.decay])
    now = began if days == 0 else _rounded(began * left)
    return None if abs(now - item.stability) < STABILITY_STEP / 2 else round(now, 3)


def apply_decay(memory: Memory, at: datetime) -> Memory:
    """An item with the stability that it has at a time."""
    stability = decayed_stability(memory, at)
    if stability is None or memory.item is None:
        return memory
    return memory.model_copy(update={"item": memory.item.model_copy(update={"stability": stability})})


def _rounded(stability: float) -> float:
    return round(stability / STABILITY_STEP) * STABILITY_STEP
