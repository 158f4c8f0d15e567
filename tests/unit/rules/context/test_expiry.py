"""Sentences that limit themselves to a date that has passed."""

from datetime import UTC, date, datetime

import pytest

from agents.rules.context.visible_memories import expired_spans

SAID = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)
"""A Wednesday."""


def expired(text: str, today: date) -> list[str]:
    return [text[span.start : span.end] for span in expired_spans(text, SAID, today)]


@pytest.mark.parametrize(
    ("text", "last_day"),
    [
        ("No deploys until 20 March 2026.", date(2026, 3, 20)),
        ("From 15 April till 20 April nothing may be changed.", date(2026, 4, 20)),
        ("Nothing is merged before Saturday.", date(2026, 3, 7)),
        ("Until the Monday after nothing is deployed.", date(2026, 3, 16)),
        ("The report must not be sent today.", date(2026, 3, 4)),
        ("No meetings this week, that's a rule.", date(2026, 3, 8)),
        ("Don't touch the billing module on 12 April.", date(2026, 4, 12)),
        ("Bis 20. März darf niemand etwas ändern.", date(2026, 3, 20)),
    ],
)
def test_sentence_holds_up_to_its_own_last_day(text: str, last_day: date) -> None:
    assert expired(text, last_day) == []
    assert expired(text, date.fromordinal(last_day.toordinal() + 1)) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "Never deploy on a Friday.",
        "No deploys on Fridays.",
        "The answer must come within two seconds.",
        "From 1 June 2026 orders must have an id.",
        "Backups must be encrypted since 3 January 2026.",
        "Changes must be reviewed by two people.",
        "Run the linter before you commit.",
    ],
)
def test_sentence_without_an_end_never_expires(text: str) -> None:
    assert expired(text, date(2030, 1, 1)) == []


def test_only_the_sentence_with_the_date_expires() -> None:
    text = "Never log passwords. No deploys until 20 April. It must run offline."
    assert expired(text, date(2026, 5, 1)) == ["No deploys until 20 April."]


@pytest.mark.parametrize(
    "text",
    [
        "I am allergic to penicillin, diagnosed by Dr. Meyer on 3 May 2024.",
        "Never send customer data through email, as agreed on 12 March 2025.",
        "Since 1 April 2025 every payment must be approved by Ana.",
        "Never deploy before running the tests; we lost data on 2025-05-02.",
        "As of today, never commit secrets.",
        "I found out today that I am allergic to peanuts.",
        "From today on the budget must not exceed 5,000.",
    ],
)
def test_date_that_ends_nothing_expires_nothing(text: str) -> None:
    assert expired(text, date(2027, 1, 1)) == []


def test_end_after_the_calendar_is_not_past() -> None:
    assert expired_spans("No deploys until Monday.", datetime(9999, 12, 30, tzinfo=UTC), date(2027, 1, 1)) == []
