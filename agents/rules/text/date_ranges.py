"""The stretches of time that a question names: a day, a month, a year. Pure.

Enters: a question, and the years that there are memories of. Leaves: pairs of days, first and last. Guaranteed: time
linear in the question; a month without a year is that month of each of the years, and a word that is a month only
sometimes, as `may`, counts only where its surroundings say so.
"""

import calendar
import re
from collections.abc import Sequence
from datetime import date

from agents.rules.text.date_words import AMBIGUOUS_MONTHS, MONTHS
from agents.rules.text.tokenizer import fold

DateRange = tuple[int, int]
"""Days as `date.toordinal` counts them, the last included."""

MAX_QUESTION_CHARS = 4096
"""Characters of a question that are read."""

MAX_YEARS = 32
"""Years that a month without one is looked for in, the latest."""

_MORE_MONTHS = {
    name: number
    for number, names in enumerate(
        [
            "gennaio janeiro",
            "febbraio fevereiro",
            "marco",
            "aprile",
            "maggio maio",
            "giugno junho",
            "luglio julho",
            "",
            "settembre setembro",
            "ottobre outubro",
            "novembro",
            "dicembre dezembro",
        ],
        1,
    )
    for name in names.split()
}
"""Months in Italian and Portuguese."""

_ALL_MONTHS = {**MONTHS, **_MORE_MONTHS}

_NAMES = "|".join(sorted(_ALL_MONTHS, reverse=True))

_MONTH = re.compile(
    rf"(?:\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|\.)?[ ](?:of[ ]|de[ ])?)?\b(?P<month>{_NAMES})\b"
    r"(?:[ ](?P<after>\d{1,2})(?:st|nd|rd|th)?\b(?![:.]\d))?(?:,?[ ](?:de[ ]|of[ ])?(?P<year>(?:19|20)\d\d))?"
)
_YEAR = re.compile(r"\b(?P<year>(?:19|20)\d\d)\b")
_BEFORE_A_MONTH = re.compile(r"\b(?:in|of|since|until|by|during|last|early|late|im|seit|en|de|em|ab)[ ]$")


def find_date_ranges(question: str, years: Sequence[int]) -> list[DateRange]:
    """The stretches named; those of years only where no month is."""
    text = fold(question[:MAX_QUESTION_CHARS])
    named = [stretch for match in _MONTH.finditer(text) for stretch in _months(match, text, years[-MAX_YEARS:])]
    return named or [_year(int(match["year"])) for match in _YEAR.finditer(text)]


def _months(match: re.Match[str], text: str, years: Sequence[int]) -> list[DateRange]:
    day = match["day"] or match["after"]
    if match["month"] in AMBIGUOUS_MONTHS and not (day or match["year"]):
        start = match.start("month")
        if not _BEFORE_A_MONTH.search(text, max(0, start - 8), start):
            return []
    month = _ALL_MONTHS[match["month"]]
    wanted = [int(match["year"])] if match["year"] else years
    return [stretch for year in wanted for stretch in _days(year, month, int(day or 0))]


def _days(year: int, month: int, day: int) -> list[DateRange]:
    """One day, or the whole month for no day; nothing for a day that there isn't."""
    last = calendar.monthrange(year, month)[1]
    if day > last:
        return []
    return [(date(year, month, day or 1).toordinal(), date(year, month, day or last).toordinal())]


def _year(year: int) -> DateRange:
    return date(year, 1, 1).toordinal(), date(year, 12, 31).toordinal()
