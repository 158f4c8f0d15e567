"""Sticky memories are those in force: not expired, taken back, corrected or fixed."""

from datetime import UTC, datetime

import pytest

from tests.builders.memories import made
from tests.fakes.clock import FakeClock
from tests.harnesses.contexts import ContextHarness

DAY = 24 * 60
"""Minutes; `made` counts them from Sunday, 1 February 2026."""


async def sticky(library: ContextHarness) -> list[str]:
    result = await library.assemble_context(budget_tokens=2000)
    return [library.records[memory_id].text for memory_id in result.sticky]


async def test_rule_is_sticky_up_to_its_own_date(library: ContextHarness) -> None:
    rule = "Nothing is deployed until 6 February 2026."
    library = ContextHarness(library.words, clock=FakeClock(datetime(2026, 2, 6, 23, tzinfo=UTC)))
    library.store(made(rule, 0))
    assert await sticky(library) == [rule]
    library.clock.forward(2 * 3600)
    assert await sticky(library) == []


async def test_rule_beside_an_expired_one_stays(library: ContextHarness) -> None:
    text = "Never log passwords. Nothing is deployed until 6 February 2026."
    library.store(made(text, 0), made("Good morning.", 9 * DAY))
    assert await sticky(library) == [text]


@pytest.mark.parametrize(
    ("rule", "statement"),
    [
        ("No deploys on Fridays.", "The Friday deploy ban is lifted."),
        ("It must run offline.", "It no longer has to run offline."),
        ("Must support 10,000 concurrent users", "The requirement of 10,000 concurrent users no longer applies."),
    ],
)
async def test_rule_that_is_taken_back_is_not_sticky(library: ContextHarness, rule: str, statement: str) -> None:
    library.store(made(rule, 0))
    assert await sticky(library) == [rule]
    library.store(made(statement, 5, conversation_id="c2"))
    assert await sticky(library) == []


async def test_rule_set_again_after_it_was_taken_back_is_sticky(library: ContextHarness) -> None:
    library.store(made("No deploys on Fridays.", 0), made("The Friday deploy ban is lifted.", 5))
    library.store(made("Never deploy on a Friday!", 9))
    assert await sticky(library) == ["Never deploy on a Friday!"]


async def test_taking_back_one_rule_leaves_the_others(library: ContextHarness) -> None:
    library.store(made("It must run on Postgres.", 0), made("The Friday deploy ban is lifted.", 5))
    assert await sticky(library) == ["It must run on Postgres."]


async def test_an_assistant_takes_back_no_rule(library: ContextHarness) -> None:
    library.store(made("No deploys on Fridays.", 0), made("The Friday deploy ban is lifted.", 5, role="assistant"))
    assert await sticky(library) == ["No deploys on Fridays."]


async def test_rule_with_a_corrected_number_is_not_sticky(library: ContextHarness) -> None:
    correction = "No, make it at most 12 pages for the report."
    library.store(made("The report must have at most 10 pages.", 0), made(correction, 5))
    assert await sticky(library) == [correction]


async def test_error_fixed_in_another_conversation_is_not_sticky(library: ContextHarness) -> None:
    error = "The invoice export crashes when I click on print."
    library.store(made(error, 0, conversation_id="c2"))
    assert await sticky(library) == [error]
    library.store(made("The crash of the invoice export on print is fixed.", 5, conversation_id="c3"))
    assert await sticky(library) == []


async def test_sentence_that_is_due_once_is_no_rule(library: ContextHarness) -> None:
    library.store(made("Yes, and it must be there before Saturday.", 0))
    result = await library.assemble_context(budget_tokens=2000)
    assert result.sticky == []
    assert result.sections["rules"] == []


async def test_rule_of_another_project_is_not_taken_back(library: ContextHarness) -> None:
    rule = made("No deploys on Fridays.", 0, project="p1")
    library.store(rule, made("The Friday deploy ban is lifted.", 5, project="p2"))
    shown = await library.assemble_context(project=["p1", "p2"], budget_tokens=2000)
    assert rule.memory_id in shown.sticky


async def test_safety_requirement_of_another_mode_expires_too(library: ContextHarness) -> None:
    library.store(made("Never give her penicillin until 10 February 2026.", 0, mode="health"))
    assert await sticky(library) == []
