"""Token budgets by interaction mode, and priorities of sticky memories."""

from typing import get_args

import pytest
from modestream_client.contexts import SECTIONS, Section
from modestream_client.vocabulary import InteractionMode

from agents.rules.context.section_candidates import allocate_remaining_tokens, scale_budgets
from agents.rules.context.sticky import invariants_of
from agents.rules.cues.mode_taxonomy import StickyKind
from schemas.state.interaction import INTERACTION_MODES
from tests.builders.taxonomies import SHIPPED

SUMS = {"TASK": 53000, "EXPLORATION": 62000, "DEBUGGING": 49000, "LEARNING": 60000, "GENERAL": 53000}
"""Sums of the tables, added by hand."""


def test_every_interaction_mode_has_budgets() -> None:
    assert {mode: sum(table.budgets.values()) for mode, table in SHIPPED.modes.items()} == SUMS


@pytest.mark.parametrize(
    ("mode", "section", "tokens"),
    [
        ("TASK", "rules", 10000),
        ("TASK", "recent_window", 2000),
        ("EXPLORATION", "recent_window", 15000),
        ("DEBUGGING", "retrieved_evidence", 25000),
        ("DEBUGGING", "capsules", 0),
        ("LEARNING", "task_state", 0),
        ("LEARNING", "relevant_decisions", 8000),
        ("GENERAL", "recent_window", 8000),
    ],
)
def test_total_of_the_table_gives_the_table(mode: InteractionMode, section: Section, tokens: int) -> None:
    assert scale_budgets(SHIPPED.modes[mode], SUMS[mode])[section] == tokens


@pytest.mark.parametrize("budget", [300, 301, 4000, 9999, 1_000_000])
@pytest.mark.parametrize("mode", INTERACTION_MODES)
def test_budgets_keep_proportions_and_never_exceed_the_total(mode: InteractionMode, budget: int) -> None:
    sections = scale_budgets(SHIPPED.modes[mode], budget)
    assert list(sections) == list(SECTIONS)
    assert budget - len(SECTIONS) < sum(sections.values()) <= budget
    for section, given in sections.items():
        assert 0 <= SHIPPED.modes[mode].budgets[section] / SUMS[mode] * budget - given < 1


def test_sticky_kinds_have_descending_priorities() -> None:
    invariants = invariants_of(SHIPPED.sticky)
    assert [(invariant.kind, invariant.priority) for invariant in invariants] == [
        ("safety_requirement", 1000),
        ("user_correction", 900),
        ("hard_constraint", 800),
        ("blocking_error", 700),
    ]
    assert {invariant.kind for invariant in invariants} == set(get_args(StickyKind))
    assert all(invariant.description for invariant in invariants)


def test_unused_context_has_the_full_budgets() -> None:
    budget = scale_budgets(SHIPPED.modes["TASK"], 5300)
    assert allocate_remaining_tokens(budget, dict.fromkeys(SECTIONS, 0), 5300) == budget


def test_overdrawn_section_shrinks_the_others_in_proportion() -> None:
    budget, used = scale_budgets(SHIPPED.modes["TASK"], 5300), {**dict.fromkeys(SECTIONS, 0), "rules": 3150}
    room = allocate_remaining_tokens(budget, used, 5300 - 3150)
    assert room["rules"] == 0
    assert room["retrieved_evidence"] == 1400
    assert sum(room.values()) == 2150
    assert all(room[section] == budget[section] // 2 for section in SECTIONS if section != "rules")


def test_full_context_has_no_room_left() -> None:
    assert set(
        allocate_remaining_tokens(
            scale_budgets(SHIPPED.modes["LEARNING"], 4000), {**dict.fromkeys(SECTIONS, 0), "rules": 4000}, 0
        ).values()
    ) == {0}
