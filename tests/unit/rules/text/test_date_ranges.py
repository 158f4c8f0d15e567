"""Date ranges of a question."""

from datetime import date

import pytest

from agents.rules.text.date_ranges import find_date_ranges

YEARS = range(2025, 2027)


def date_range(first: str, last: str) -> tuple[int, int]:
    return date.fromisoformat(first).toordinal(), date.fromisoformat(last).toordinal()


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What happened on 4 May 2026?", "2026-05-04", "2026-05-04"),
        ("What did she do on May 4, 2026?", "2026-05-04", "2026-05-04"),
        ("What did she do in June 2025?", "2025-06-01", "2025-06-30"),
        ("Was geschah am 3. Oktober 2025?", "2025-10-03", "2025-10-03"),
        ("¿Qué pasó en febrero de 2026?", "2026-02-01", "2026-02-28"),
        ("Cosa abbiamo deciso a gennaio 2026?", "2026-01-01", "2026-01-31"),
        ("What were the plans for 2025?", "2025-01-01", "2025-12-31"),
    ],
)
def test_named_date_range(question: str, first: str, last: str) -> None:
    assert find_date_ranges(question, YEARS) == [date_range(first, last)]


def test_month_without_year_applies_to_each_year() -> None:
    assert find_date_ranges("What happened in June?", YEARS) == [
        date_range("2025-06-01", "2025-06-30"),
        date_range("2026-06-01", "2026-06-30"),
    ]


@pytest.mark.parametrize("question", ["What may she do?", "Who is March?", "31 June", "Room 2300", ""])
def test_ambiguous_words_give_no_range(question: str) -> None:
    assert find_date_ranges(question, YEARS) == []


def test_ambiguous_month_counts_after_a_preposition() -> None:
    assert len(find_date_ranges("What happened in May?", YEARS)) == 2
