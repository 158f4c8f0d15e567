"""Items of an assistant's replies: a short one reports, a long one explains."""

import pytest

from agents.rules.items.extracting import ExtractedItem, extract_by_rules
from agents.rules.items.kinds import MAX_REPORT_CHARS
from tests.builders.memories import made

ADVICE = "A resume is read by people and by programs, and both like it simple.\n\n"
LONG_ADVICE = ADVICE * (MAX_REPORT_CHARS // len(ADVICE) + 1)
COMMAND = "```bash\nflask --app app run\n```"
HOW = "To run the application, check the environment and then execute the following command:"


def items(text: str, role: str = "assistant", speaker: str | None = None) -> list[ExtractedItem]:
    return extract_by_rules(made(text, role=role, speaker=speaker))


@pytest.mark.parametrize("sentence", ["The staging port is 8081.", "We decided to use PostgreSQL for the ledger."])
def test_a_short_reply_reports(sentence: str) -> None:
    assert [item.text for item in items(sentence)] == [sentence]


@pytest.mark.parametrize(
    "sentence",
    ["The sides are 6 cm and 8 cm.", "Stick to standard fonts like Arial.", "Let's use a coin toss as an example."],
)
def test_a_long_reply_neither_states_nor_decides(sentence: str) -> None:
    assert items(LONG_ADVICE + sentence) == []


@pytest.mark.parametrize(("role", "speaker"), [("user", None), ("assistant", "Ana")])
def test_people_decide_in_long_turns_too(role: str, speaker: str | None) -> None:
    decision = "We decided to use PostgreSQL for the ledger."
    assert [item.text for item in items(LONG_ADVICE + decision, role, speaker)] == [decision]


def test_a_long_reply_says_how_something_is_done() -> None:
    procedure = "To deploy, run make release."
    assert [item.text for item in items(LONG_ADVICE + procedure)] == [procedure]


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("between", ["\n", "\n\n"])
def test_a_procedure_has_the_command_that_it_announces(role: str, between: str) -> None:
    text = f"{HOW}{between}{COMMAND}"
    [item] = items(f"Here it is.\n\n{text}\n\nThat is all.", role)
    assert item.text == text


@pytest.mark.parametrize(
    "rest", ["", "\n\nThen look at the page.", "\n\n```bash\nnever closed", f"\n\n```\n{'x' * 1000}\n```"]
)
def test_a_procedure_without_the_command_that_it_announces_is_none(rest: str) -> None:
    assert items(HOW + rest) == []
