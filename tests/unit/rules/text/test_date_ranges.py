"""The stretches of time that a question names."""

from datetime import date

import pytest

from agents.rules.text.date_ranges import find_date_ranges

YEARS = range(2025, 2027)


def stretch(first: str, last: str) -> tuple[int, int]:
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
def test_a_stretch_is_named(question: str, first: str, last: str) -> None:
    assert find_date_ranges(question, YEARS) == [stretch(first, last)]


def test_a_month_without_a_year_is_that_month_of_each_year() -> None:
    assert find_date_ranges("What happened in June?", YEARS) == [
        stretch("2025-06-01", "2025-06-30"),
        stretch("2026-06-01", "2026-06-30"),
    ]


@pytest.mark.parametrize("question", ["What may she do?", "Who is March?", "31 June", "Room 2300", ""])
def test_what_only_looks_like_a_date_names_nothing(question: str) -> None:
    assert find_date_ranges(question, YEARS) == []


def test_a_month_that_is_also_a_word_counts_behind_a_preposition() -> None:
    assert len(find_date_ranges("What happened in May?", YEARS)) == 2
