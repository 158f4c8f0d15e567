"""The dates that a text speaks of, in English, German, Spanish and French. Pure: today is when the turn was said.

Enters: a text and the moment it was said. Leaves: ISO dates. Guaranteed: time linear in the text, and no guess: a form
with two readings, as `03/04`, gives nothing.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, timedelta

from agents.rules.text.date_words import (
    AMBIGUOUS_MONTHS,
    DAY_WORDS,
    DAYS_PER_UNIT,
    LAST_WORDS,
    MONTHS,
    NEXT_WORDS,
    NUMBER_WORDS,
    WEEK_PHRASES,
    WEEKDAYS,
)
from agents.rules.text.tokenizer import fold

MAX_DATES = 16
"""Dates kept of one text: what names more is a table."""

MAX_SCANNED_CHARS = 32_768
"""Characters that are read, which is the longest turn."""

_DAYS_APART = 183
"""Days of half a year: a date without a year is the nearest one to when it was said."""


def _either(words: Iterable[str]) -> str:
    """A pattern of any of them, the longest first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_MONTH, _WEEKDAY = _either(MONTHS), _either(WEEKDAYS)
_YEAR = r"(?P<year>(?:19|20)\d\d)(?![\d.]\d)"
_COUNT = rf"(?P<count>\d{{1,3}}|{_either(NUMBER_WORDS)})[ ](?P<unit>{_either(DAYS_PER_UNIT)})\b"

_YEAR_FIRST = re.compile(r"(?<![\d./-])(?P<year>(?:19|20)\d\d)([-/])(?P<month>\d\d)\2(?P<day>\d\d)(?![\d./-]\d|\d)")
_DOTTED = re.compile(rf"(?<![\d.])(?P<day>\d{{1,2}})\.[ ]?(?P<month>\d{{1,2}})\.[ ]?{_YEAR}")
_SLASHED = re.compile(rf"(?<![\d/-])(?P<first>\d{{1,2}})([/-])(?P<second>\d{{1,2}})\2{_YEAR}")
_DAY_FIRST = re.compile(
    rf"(?<![\d.:/-])(?P<day>\d{{1,2}})(?P<th>st|nd|rd|th|er|\.)?[ ](?P<of>of[ ]|de[ ])?(?P<month>{_MONTH})\b\.?"
    rf"(?:,?[ ](?:de[ ]|del[ ])?{_YEAR})?"
)
_MONTH_FIRST = re.compile(
    rf"\b(?P<month>{_MONTH})\.?[ ](?P<day>\d{{1,2}})(?P<th>st|nd|rd|th)?(?P<of>)(?![\d:.,/-]\d|\d)(?:,?[ ]{_YEAR})?"
)
_NAMED_DAY = re.compile(rf"(?<![\w-])(?:{_either(DAY_WORDS)})(?![\w-])")
_WEEK = re.compile(rf"\b(?:{_either(WEEK_PHRASES)})\b")
_FROM_NOW = re.compile(rf"\b(?:(?P<en>en)|in|dentro[ ]de|dans)[ ]{_COUNT}")
_AGO = re.compile(rf"\b(?:vor|hace|il[ ]y[ ]a)[ ]{_COUNT}")
_AGO_AFTER = re.compile(rf"\b{_COUNT}[ ]ago\b")
_WEEKDAY_BESIDE = re.compile(
    rf"\b(?:(?P<before>{_either(LAST_WORDS | NEXT_WORDS)})[ ](?P<day>{_WEEKDAY})"
    rf"|(?P<day_first>{_WEEKDAY})[ ](?:que[ ])?(?P<after>{_either(LAST_WORDS | NEXT_WORDS)}))\b"
)
_OTHER_MEANING = re.compile(
    r"\b(?:guten|heute|gestern|jeden|diesen|ganzen|am|der|den|la|las|una|esta|cada|toda|buena|buenas)[ ]$"
)
"""Before `morgen` or `manana` these make it the morning."""

_FRENCH = re.compile(r"\b(?:le|la|les|un|une|est|et|j'ai|nous|on|il|elle|que|pas|pour|avec|soir|matin)\b")
"""Where none of these is, `hier` is likely German."""

_GREETING_GOES_ON = re.compile(r"[!,.]|$|[ ](?:zusammen|allerseits|ihr)\b")


def find_dates(text: str, occurred_at: datetime) -> tuple[str, ...]:
    """The dates as `YYYY-MM-DD`, each once, in the order of the text, at most `MAX_DATES`.

    A date without a year is the nearest one; a week is named by its Monday; `last Monday` is the latest one before
    today, and `next Monday` counts only where the first one to come is also that of the next week.
    """
    folded, today = " ".join(fold(text[:MAX_SCANNED_CHARS]).split()), occurred_at.date()
    found = sorted((start, day) for rule in _RULES for start, day in rule(folded, today))
    return tuple(dict.fromkeys(day.isoformat() for _, day in found))[:MAX_DATES]


_Found = Iterator[tuple[int, date]]


def _numeric(text: str, _: date) -> _Found:
    for pattern in (_YEAR_FIRST, _DOTTED):
        for match in pattern.finditer(text):
            yield from _checked(match, int(match["year"]), int(match["month"]), int(match["day"]))
    for match in _SLASHED.finditer(text):
        first, second = int(match["first"]), int(match["second"])
        if first > 12 or first == second:
            yield from _checked(match, int(match["year"]), second, first)
        elif second > 12:
            yield from _checked(match, int(match["year"]), first, second)


def _written(text: str, today: date) -> _Found:
    for pattern in (_DAY_FIRST, _MONTH_FIRST):
        for match in pattern.finditer(text):
            if match["month"] in AMBIGUOUS_MONTHS and not (match["year"] or match["th"] or match["of"]):
                continue
            month, day = MONTHS[match["month"]], int(match["day"])
            years = [int(match["year"])] if match["year"] else [today.year - 1, today.year, today.year + 1]
            near = [found for year in years for found in _checked(match, year, month, day)]
            yield from (one for one in near if match["year"] or abs((one[1] - today).days) < _DAYS_APART)


def _named(text: str, today: date) -> _Found:
    french = _FRENCH.search(text) is not None
    for match in _NAMED_DAY.finditer(text):
        if not _means_other(match, text, french):
            yield from _shifted(match, today, DAY_WORDS[match.group()])


def _weeks(text: str, today: date) -> _Found:
    for match in _WEEK.finditer(text):
        yield from _shifted(match, today, 7 * WEEK_PHRASES[match.group()] - today.weekday())


def _counted(text: str, today: date) -> _Found:
    for pattern, sign in ((_FROM_NOW, 1), (_AGO, -1), (_AGO_AFTER, -1)):
        for match in pattern.finditer(text):
            if pattern is _FROM_NOW and _is_a_duration(match):
                continue
            count = int(match["count"]) if match["count"].isdigit() else NUMBER_WORDS[match["count"]]
            yield from _shifted(match, today, sign * count * DAYS_PER_UNIT[match["unit"]])


def _weekdays(text: str, today: date) -> _Found:
    for match in _WEEKDAY_BESIDE.finditer(text):
        weekday = WEEKDAYS[match["day"] or match["day_first"]]
        ahead = (weekday - today.weekday() - 1) % 7 + 1
        if (match["before"] or match["after"]) in LAST_WORDS:
            yield from _shifted(match, today, -((today.weekday() - weekday - 1) % 7 + 1))
        elif today.weekday() + ahead > 6:
            yield from _shifted(match, today, ahead)


_RULES: tuple[Callable[[str, date], _Found], ...] = (_numeric, _written, _named, _weeks, _counted, _weekdays)


def _means_other(match: re.Match[str], text: str, french: bool) -> bool:
    """Whether the word is a morning, a greeting or the German `here`."""
    if match.group() == "hier":
        return not french
    if match.group() not in ("morgen", "manana"):
        return False
    greets = match.start() == 0 and _GREETING_GOES_ON.match(text, match.end())
    return bool(greets or _OTHER_MEANING.search(text, max(0, match.start() - 9), match.start()))


def _is_a_duration(match: re.Match[str]) -> bool:
    """Whether it says how long rather than when: the French `en trois jours`, and `in a day`."""
    if match["en"] and match["unit"][:3] not in ("dia", "sem"):
        return True
    return DAYS_PER_UNIT[match["unit"]] == 1 and NUMBER_WORDS.get(match["count"]) == 1


def _shifted(match: re.Match[str], today: date, days: int) -> _Found:
    try:
        yield match.start(), today + timedelta(days)
    except OverflowError:
        return


def _checked(match: re.Match[str], year: int, month: int, day: int) -> _Found:
    try:
        yield match.start(), date(year, month, day)
    except ValueError:
        return
