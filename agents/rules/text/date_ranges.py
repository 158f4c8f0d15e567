"""Extract the date ranges that a question names: a day, a month, a year. Pure.

Enters: a question and the years that have memories. Leaves: pairs of first and last day. Guaranteed: time linear in the
question; a month without a year matches that month of each year; an ambiguous month, such as `may`, counts only with a
day, a year or a preposition.
"""

import calendar
import re
from collections.abc import Sequence
from datetime import date

from agents.rules.text.date_words import AMBIGUOUS_MONTHS, MONTHS, MONTHS_IN_ITALIAN_AND_PORTUGUESE
from agents.rules.text.tokenizer import fold

DateRange = tuple[int, int]
"""First and last day, both included, as `date.toordinal` counts."""

MAX_QUESTION_CHARS = 4096
"""Characters of a question to parse."""

MAX_YEARS = 32
"""Latest years to apply a month without a year to."""

_ALL_MONTHS = {**MONTHS, **MONTHS_IN_ITALIAN_AND_PORTUGUESE}
_NAMES = "|".join(sorted(_ALL_MONTHS, reverse=True))

_MONTH = re.compile(
    rf"(?:\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|\.)?[ ](?:of[ ]|de[ ])?)?\b(?P<month>{_NAMES})\b"
    r"(?:[ ](?P<after>\d{1,2})(?:st|nd|rd|th)?\b(?![:.]\d))?(?:,?[ ](?:de[ ]|of[ ])?(?P<year>(?:19|20)\d\d))?"
)
_YEAR = re.compile(r"\b(?P<year>(?:19|20)\d\d)\b")
_BEFORE_A_MONTH = re.compile(r"\b(?:in|of|since|until|by|during|last|early|late|im|seit|en|de|em|ab)[ ]$")


def find_date_ranges(question: str, years: Sequence[int]) -> list[DateRange]:
    """Return the named months and days, or the named years if there are none."""
    text = fold(question[:MAX_QUESTION_CHARS])
    ranges = [found for match in _MONTH.finditer(text) for found in _month_ranges(match, text, years[-MAX_YEARS:])]
    return ranges or [_year_range(int(match["year"])) for match in _YEAR.finditer(text)]


def _month_ranges(match: re.Match[str], text: str, years: Sequence[int]) -> list[DateRange]:
    day = match["day"] or match["after"]
    if match["month"] in AMBIGUOUS_MONTHS and not (day or match["year"]):
        start = match.start("month")
        if not _BEFORE_A_MONTH.search(text, max(0, start - 8), start):
            return []
    month = _ALL_MONTHS[match["month"]]
    wanted = [int(match["year"])] if match["year"] else years
    return [found for year in wanted for found in _day_ranges(year, month, int(day or 0))]


def _day_ranges(year: int, month: int, day: int) -> list[DateRange]:
    """Return the day, the whole month if `day` is 0, or nothing if the month is shorter."""
    last = calendar.monthrange(year, month)[1]
    if day > last:
        return []
    return [(date(year, month, day or 1).toordinal(), date(year, month, day or last).toordinal())]


def _year_range(year: int) -> DateRange:
    return date(year, 1, 1).toordinal(), date(year, 12, 31).toordinal()
