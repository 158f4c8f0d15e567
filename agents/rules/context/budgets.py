"""Token budgets of the sections of an assembled context, by interaction mode. Pure."""

from collections.abc import Mapping

from schemas.assemble import SECTIONS, Section
from schemas.interaction import InteractionMode

SECTION_BUDGETS: Mapping[InteractionMode, tuple[int, ...]] = {
    "TASK": (10000, 5000, 2000, 28000, 4000, 4000),
    "EXPLORATION": (3000, 1000, 15000, 35000, 6000, 2000),
    "DEBUGGING": (5000, 4000, 12000, 25000, 3000, 0),
    "LEARNING": (8000, 0, 2000, 40000, 8000, 2000),
    "GENERAL": (6000, 3000, 8000, 28000, 4000, 4000),
}
"""Tokens of each section in the order of `SECTIONS`; only the proportions matter."""


def scale_budgets(mode: InteractionMode, budget_tokens: int) -> dict[Section, int]:
    """Return the sections' budgets in tokens, in the proportions of the mode; their sum is at most `budget_tokens`."""
    shares = SECTION_BUDGETS[mode]
    total = sum(shares)
    return {section: budget_tokens * share // total for section, share in zip(SECTIONS, shares, strict=True)}


def allocate_remaining_tokens(
    budget: Mapping[Section, int], used: Mapping[Section, int], left: int
) -> dict[Section, int]:
    """Return what each section may still take, in tokens; the sum is at most `left`.

    If sticky memories exceed their section's budget, all sections shrink in proportion.
    """
    wanted = {section: max(0, budget[section] - used[section]) for section in SECTIONS}
    total = sum(wanted.values())
    return {section: wanted[section] * left // total if total > left else wanted[section] for section in SECTIONS}
