import time
from datetime import UTC, date, datetime

import pytest

from agents.rules.text.dates import MAX_DATES, find_date_ranges, find_dates

SUNDAY = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("due 2026-11-30 or 2026/12/01", ["2026-11-30", "2026-12-01"]),
        ("am 3.4.2026", ["2026-04-03"]),
        ("22/11/2026 and 11/23/2026", ["2026-11-22", "2026-11-23"]),
        ("March 5, 2026", ["2026-03-05"]),
        ("the 5th of May 2027, or Dec 24", ["2027-05-05", "2026-12-24"]),
        ("5 de marzo de 2026", ["2026-03-05"]),
        ("le 1er mars 2027", ["2027-03-01"]),
        ("am 5. März 2026", ["2026-03-05"]),
        ("yesterday, tomorrow", ["2026-11-21", "2026-11-23"]),
        ("gestern und übermorgen", ["2026-11-21", "2026-11-24"]),
        ("pasado mañana", ["2026-11-24"]),
        ("hier soir, avant-hier", ["2026-11-21", "2026-11-20"]),
        ("in three days, 2 weeks ago", ["2026-11-25", "2026-11-08"]),
        ("vor drei Tagen", ["2026-11-19"]),
        ("hace 5 días, dentro de dos semanas", ["2026-11-17", "2026-12-06"]),
        ("il y a deux semaines, dans trois jours", ["2026-11-08", "2026-11-25"]),
        ("last Monday", ["2026-11-16"]),
        ("el lunes pasado", ["2026-11-16"]),
        ("lundi dernier", ["2026-11-16"]),
        ("kommenden Freitag", ["2026-11-27"]),
        ("next week", ["2026-11-23"]),
        ("letzte Woche", ["2026-11-09"]),
    ],
)
def test_written_and_relative_forms_become_dates(text: str, expected: list[str]) -> None:
    assert list(find_dates(text, SUNDAY)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "03/04/2026",
        "03/04",
        "version 2.11.2026.3",
        "2026-13-01 and 2026-02-30",
        "guten Morgen, heute wäre übertrieben"[:12],
        "Morgen zusammen",
        "por la mañana",
        "das ist hier im Haus",
        "10 may be enough",
        "en trois jours c'est fini",
        "in a day or so",
        "nothing at all",
        "",
    ],
)
def test_ambiguous_and_invalid_forms_give_no_date(text: str) -> None:
    assert find_dates(text, SUNDAY) == ()


def test_next_weekday_counts_only_if_unambiguous() -> None:
    wednesday = datetime(2026, 11, 18, tzinfo=UTC)
    assert find_dates("next Friday", wednesday) == ()
    assert find_dates("next Monday", wednesday) == ("2026-11-23",)


def test_date_without_year_is_the_nearest_one() -> None:
    assert find_dates("5 January", SUNDAY) == ("2027-01-05",)
    assert find_dates("5 October", SUNDAY) == ("2026-10-05",)


def test_dates_are_unique_and_limited() -> None:
    assert find_dates("today, 2026-11-22, heute", SUNDAY) == ("2026-11-22",)
    assert len(find_dates(" ".join(f"2026-10-{day:02}" for day in range(1, 31)), SUNDAY)) == MAX_DATES


def test_dates_beyond_the_calendar_are_dropped() -> None:
    assert find_dates("in 300 weeks", datetime(9999, 12, 30, tzinfo=UTC)) == ()


@pytest.mark.parametrize("piece", ["hier ", "1/", "5. ", "2026-", "last ", "in 1 ", "a ", "1", "morgen ", "in a day "])
def test_repetitive_text_is_scanned_in_linear_time(piece: str) -> None:
    hostile = piece * (32_768 // len(piece))
    began = time.process_time()
    find_dates(hostile, SUNDAY)
    assert time.process_time() - began < 5, "quadratic: a text of this length takes about 0.03 s"


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
