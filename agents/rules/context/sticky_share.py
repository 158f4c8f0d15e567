"""Limit the share of the budget that sticky memories take before all else. Pure."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from agents.rules.context.sticky import SAFETY, Invariant

MAX_STICKY_SHARE = 1 / 3
"""Share of the budget for sticky memories that have nothing to do with the query (`docs/contract.md`)."""


class SizedSticky(NamedTuple):
    """A sticky memory and the tokens of its line in the context."""

    invariant: Invariant
    memory_id: str
    tokens: int


class StickySplit(NamedTuple):
    """Sticky memories that are kept before all else, and those that are candidates like any other.

    Both keep the order of the sticky memories, most important first.
    """

    kept: list[SizedSticky]
    demoted: list[SizedSticky]


def split_sticky(sticky: Sequence[SizedSticky], budget_tokens: int, related: Collection[str]) -> StickySplit:
    """Demote unrelated sticky memories where all together exceed their share of the budget.

    `related` are the ids of memories that have to do with the query: its hits. Safety requirements and related ones
    are never demoted. A demoted memory that finds no room is dropped, and is no breach.
    """
    if sum(one.tokens for one in sticky) <= budget_tokens * MAX_STICKY_SHARE:
        return StickySplit(list(sticky), [])
    ids = frozenset(related)
    stays = [one.invariant == SAFETY or one.memory_id in ids for one in sticky]
    kept = [one for one, is_kept in zip(sticky, stays, strict=True) if is_kept]
    return StickySplit(kept, [one for one, is_kept in zip(sticky, stays, strict=True) if not is_kept])
