"""How many tokens each section of an assembled context may take: the tables of seed 002, scaled. Pure."""

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
"""Tokens by interaction mode, for each section in the order of `SECTIONS`: seed 002, "Budget Allocation"."""


def scale_budgets(mode: InteractionMode, budget_tokens: int) -> dict[Section, int]:
    """The sections' budgets in tokens: in the proportions of the mode, together no more than `budget_tokens`."""
    shares = SECTION_BUDGETS[mode]
    whole = sum(shares)
    return {section: budget_tokens * share // whole for section, share in zip(SECTIONS, shares, strict=True)}


def allocate_remaining_tokens(
    budget: Mapping[Section, int], used: Mapping[Section, int], left: int
) -> dict[Section, int]:
    """What each section may still take, in tokens, together no more than `left`.

    What must be kept may have taken more than its section's budget; all sections then have less in proportion.
    """
    wanted = {section: max(0, budget[section] - used[section]) for section in SECTIONS}
    whole = sum(wanted.values())
    return {section: wanted[section] * left // whole if whole > left else wanted[section] for section in SECTIONS}
