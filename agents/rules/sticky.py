"""What is never dropped, whatever the interaction mode: the sticky invariants of seed 002, as data. Pure."""

from typing import Literal, NamedTuple

StickyKind = Literal["safety_requirement", "user_correction", "hard_constraint", "blocking_error"]


class Invariant(NamedTuple):
    """One kind of memory that stays. Where not all find room, a higher priority stays before a lower one."""

    kind: StickyKind
    priority: int
    description: str


INVARIANTS: tuple[Invariant, ...] = (
    Invariant("safety_requirement", 1000, "a safety requirement is never dropped"),
    Invariant("user_correction", 900, "the user's latest correction is always there"),
    Invariant("hard_constraint", 800, "what must or must not be is kept"),
    Invariant("blocking_error", 700, "an error that blocks now is kept"),
)
"""Highest priority first: seed 002, "Sticky Invariants"."""
