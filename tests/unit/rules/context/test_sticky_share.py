"""Sticky memories take at most a third of the budget, except for safety requirements and what the query is about."""

import pytest

from agents.rules.context.sticky import Invariant, SizedSticky, invariants_of, split_sticky
from tests.builders.taxonomies import SHIPPED


def sized(*rows: tuple[Invariant, str, int]) -> list[SizedSticky]:
    return [SizedSticky(*row) for row in rows]


SAFETY, CORRECTION, CONSTRAINT, ERROR = invariants_of(SHIPPED.sticky)
STICKY = sized((SAFETY, "salt", 200), (CORRECTION, "port", 200), (CONSTRAINT, "pages", 200), (ERROR, "login", 100))


def names(found: list[SizedSticky]) -> list[str]:
    return [memory.memory_id for memory in found]


def test_all_are_kept_within_a_third_of_the_budget() -> None:
    split = split_sticky(STICKY, 2100, related=())
    assert names(split.kept) == ["salt", "port", "pages", "login"]
    assert split.demoted == []


def test_above_a_third_unrelated_ones_are_candidates_like_any_other() -> None:
    split = split_sticky(STICKY, 2099, related=())
    assert names(split.kept) == ["salt"]
    assert names(split.demoted) == ["port", "pages", "login"]


def test_related_ones_are_kept_in_their_order() -> None:
    split = split_sticky(STICKY, 300, related={"login", "port", "weather"})
    assert names(split.kept) == ["salt", "port", "login"]
    assert names(split.demoted) == ["pages"]


def test_safety_requirements_are_never_demoted() -> None:
    rules = sized(*((SAFETY, f"rule{number}", 100) for number in range(20)))
    split = split_sticky(rules, 300, related=())
    assert split.kept == rules
    assert split.demoted == []


@pytest.mark.parametrize("budget", [0, 300])
def test_nothing_sticky_is_nothing_kept(budget: int) -> None:
    assert split_sticky([], budget, related={"a"}) == ([], [])
