"""Extract dates from a text, and date ranges from a question, in English, German, Spanish and French. Pure.

Guaranteed: time linear in the text; an ambiguous form, such as `03/04`, gives nothing; an ambiguous month, such as
`may`, counts only with a day, a year or a preposition.
"""

import calendar
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta

from agents.rules.text.tokenizer import fold


def _numbered(names: str, first: int) -> dict[str, int]:
    return {name: number for number, row in enumerate(names.split("|"), first) for name in row.split()}


MONTHS: Mapping[str, int] = _numbered(
    "january jan januar janner enero ene janvier janv|february feb februar febrero fevrier fevr"
    "|march mar marz maerz marzo mars|april apr abril abr avril avr|may mai mayo|june jun juni junio juin"
    "|july jul juli julio juillet juil|august aug agosto ago aout|september sep sept septiembre setiembre septembre"
    "|october oct oktober okt octubre octobre|november nov noviembre novembre"
    "|december dec dezember dez diciembre dic decembre",
    1,
)
"""Months by name and common abbreviation."""

MONTHS_IN_ITALIAN_AND_PORTUGUESE: Mapping[str, int] = _numbered(
    "gennaio janeiro|febbraio fevereiro|marco|aprile|maggio maio|giugno junho|luglio julho||settembre setembro"
    "|ottobre outubro|novembro|dicembre dezembro",
    1,
)
"""Only in questions."""

WEEKDAYS: Mapping[str, int] = _numbered(
    "monday montag lunes lundi|tuesday dienstag martes mardi|wednesday mittwoch miercoles mercredi"
    "|thursday donnerstag jueves jeudi|friday freitag viernes vendredi|saturday samstag sonnabend sabado samedi"
    "|sunday sonntag domingo dimanche",
    0,
)
"""Weekdays by name; Monday is 0. Without abbreviations: `sun` and `mar` are words."""

NUMBER_WORDS: Mapping[str, int] = _numbered(
    "a an one ein eine einem einer un una uno une|two zwei dos deux|three drei tres trois|four vier cuatro quatre"
    "|five funf cinco cinq|six sechs seis|seven sieben siete sept|eight acht ocho huit|nine neun nueve neuf"
    "|ten zehn diez dix|eleven elf once onze|twelve zwolf doce douze",
    1,
)
"""Numbers up to twelve by word."""

DAY_WORDS: Mapping[str, int] = {
    **dict.fromkeys(("day before yesterday", "vorgestern", "anteayer", "antes de ayer", "avant-hier"), -2),
    **dict.fromkeys(("yesterday", "gestern", "ayer", "anoche", "hier", "last night"), -1),
    **dict.fromkeys(("today", "tonight", "this morning", "heute", "hoy", "esta noche", "aujourd'hui", "ce soir"), 0),
    **dict.fromkeys(("tomorrow", "morgen", "manana", "demain"), 1),
    **dict.fromkeys(("day after tomorrow", "ubermorgen", "uebermorgen", "pasado manana", "apres-demain"), 2),
}
"""Distance from today in days. `agents.rules.text.dates` excludes the other meanings of `morgen`, `manana`, `hier`."""

DAYS_PER_UNIT: Mapping[str, int] = {
    **dict.fromkeys(("day", "days", "tag", "tage", "tagen", "dia", "dias", "jour", "jours"), 1),
    **dict.fromkeys(("week", "weeks", "woche", "wochen", "semana", "semanas", "semaine", "semaines"), 7),
}
"""Days per unit. Months and years are left out: their length varies."""

WEEK_PHRASES: Mapping[str, int] = {
    **dict.fromkeys(
        ("last week", "letzte woche", "vorige woche", "vergangene woche", "la semana pasada", "la semaine derniere"), -1
    ),
    **dict.fromkeys(("this week", "diese woche", "esta semana", "cette semaine"), 0),
    **dict.fromkeys(
        (
            "next week",
            "nachste woche",
            "naechste woche",
            "kommende woche",
            "la proxima semana",
            "la semana que viene",
            "la semaine prochaine",
        ),
        1,
    ),
}
"""Distance from this week in weeks."""

LAST_WORDS = frozenset(
    {"last", "letzten", "letzter", "letztem", "vorigen", "vergangenen", "pasado", "ultimo", "dernier", "passe"}
)
"""Words next to a weekday in the past."""

NEXT_WORDS = frozenset(
    {"next", "nachsten", "naechsten", "nachster", "kommenden", "kommender", "proximo", "viene", "prochain"}
)
"""Words next to a weekday in the future."""

AMBIGUOUS_MONTHS = frozenset({"may", "mar", "march", "set", "ago", "abr", "out"})
"""Months that are also other words: they count only with a year, an ordinal or an `of`."""


MAX_DATES = 16
"""Maximum dates per text: a text with more is a table."""

MAX_SCANNED_CHARS = 32_768
"""Maximum characters of a text to scan: the longest turn."""

_HALF_YEAR_DAYS = 183
"""A date without a year is the one within half a year of `today`."""


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern that matches any of the words, the longest first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_MONTH, _WEEKDAY = _any_of(MONTHS), _any_of(WEEKDAYS)
_YEAR = r"(?P<year>(?:19|20)\d\d)(?![\d.]\d)"
_COUNT = rf"(?P<count>\d{{1,3}}|{_any_of(NUMBER_WORDS)})[ ](?P<unit>{_any_of(DAYS_PER_UNIT)})\b"

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
_NAMED_DAY = re.compile(rf"(?<![\w-])(?:{_any_of(DAY_WORDS)})(?![\w-])")
_WEEK = re.compile(rf"\b(?:{_any_of(WEEK_PHRASES)})\b")
_FROM_NOW = re.compile(rf"\b(?:(?P<en>en)|in|dentro[ ]de|dans)[ ]{_COUNT}")
_AGO = re.compile(rf"\b(?:vor|hace|il[ ]y[ ]a)[ ]{_COUNT}")
_AGO_AFTER = re.compile(rf"\b{_COUNT}[ ]ago\b")
_WEEKDAY_BESIDE = re.compile(
    rf"\b(?:(?P<before>{_any_of(LAST_WORDS | NEXT_WORDS)})[ ](?P<day>{_WEEKDAY})"
    rf"|(?P<day_first>{_WEEKDAY})[ ](?:que[ ])?(?P<after>{_any_of(LAST_WORDS | NEXT_WORDS)}))\b"
)
_OTHER_MEANING = re.compile(
    r"\b(?:guten|heute|gestern|jeden|diesen|ganzen|am|der|den|la|las|una|esta|cada|toda|buena|buenas)[ ]$"
)
"""Words after which `morgen` and `manana` mean the morning."""

_FRENCH = re.compile(r"\b(?:le|la|les|un|une|est|et|j'ai|nous|on|il|elle|que|pas|pour|avec|soir|matin)\b")
"""French words; a text without any of them has the German `hier` (here)."""

_AFTER_GREETING = re.compile(r"[!,.]|$|[ ](?:zusammen|allerseits|ihr)\b")


def find_dates(text: str, occurred_at: datetime) -> tuple[str, ...]:
    """Return the dates as `YYYY-MM-DD`, each once, in the order of the text, at most `MAX_DATES`.

    A date without a year is the nearest one; a week is given by its Monday; `last Monday` is the latest one before
    today; `next Monday` counts only if the next one to come is also that of next week.
    """
    folded, today = " ".join(fold(text[:MAX_SCANNED_CHARS]).split()), occurred_at.date()
    rules: tuple[_Rule, ...] = _DIGIT_RULES if _DIGIT.search(folded) else ()
    if not _WORDS_OF_DATES.isdisjoint(_WORD.findall(folded)):
        rules += _WORD_RULES
    matches = sorted((start, day) for rule in rules for start, day in rule(folded, today))
    return tuple(dict.fromkeys(day.isoformat() for _, day in matches))[:MAX_DATES]


_Matches = Iterator[tuple[int, date]]
"""Start of a match in the text, and its date."""


def _numeric_dates(text: str, _: date) -> _Matches:
    for pattern in (_YEAR_FIRST, _DOTTED):
        for match in pattern.finditer(text):
            yield from _valid_date(match, int(match["year"]), int(match["month"]), int(match["day"]))
    for match in _SLASHED.finditer(text):
        first, second = int(match["first"]), int(match["second"])
        if first > 12 or first == second:
            yield from _valid_date(match, int(match["year"]), second, first)
        elif second > 12:
            yield from _valid_date(match, int(match["year"]), first, second)


def _month_name_dates(text: str, today: date) -> _Matches:
    for pattern in (_DAY_FIRST, _MONTH_FIRST):
        for match in pattern.finditer(text):
            if match["month"] in AMBIGUOUS_MONTHS and not (match["year"] or match["th"] or match["of"]):
                continue
            month, day = MONTHS[match["month"]], int(match["day"])
            years = [int(match["year"])] if match["year"] else [today.year - 1, today.year, today.year + 1]
            candidates = [candidate for year in years for candidate in _valid_date(match, year, month, day)]
            yield from (
                candidate
                for candidate in candidates
                if match["year"] or abs((candidate[1] - today).days) < _HALF_YEAR_DAYS
            )


def _relative_days(text: str, today: date) -> _Matches:
    is_french = _FRENCH.search(text) is not None
    for match in _NAMED_DAY.finditer(text):
        if not _has_other_meaning(match, text, is_french):
            yield from _shifted_date(match, today, DAY_WORDS[match.group()])


def _relative_weeks(text: str, today: date) -> _Matches:
    for match in _WEEK.finditer(text):
        yield from _shifted_date(match, today, 7 * WEEK_PHRASES[match.group()] - today.weekday())


def _counted_offsets(text: str, today: date) -> _Matches:
    for pattern, sign in ((_FROM_NOW, 1), (_AGO, -1), (_AGO_AFTER, -1)):
        for match in pattern.finditer(text):
            if pattern is _FROM_NOW:
                # It says how long rather than when: the French `en trois jours`, or `in a day`.
                is_french = match["en"] and match["unit"][:3] not in ("dia", "sem")
                if is_french or (DAYS_PER_UNIT[match["unit"]] == 1 and NUMBER_WORDS.get(match["count"]) == 1):
                    continue
            count = int(match["count"]) if match["count"].isdigit() else NUMBER_WORDS[match["count"]]
            yield from _shifted_date(match, today, sign * count * DAYS_PER_UNIT[match["unit"]])


def _relative_weekdays(text: str, today: date) -> _Matches:
    for match in _WEEKDAY_BESIDE.finditer(text):
        weekday = WEEKDAYS[match["day"] or match["day_first"]]
        ahead = (weekday - today.weekday() - 1) % 7 + 1
        if (match["before"] or match["after"]) in LAST_WORDS:
            yield from _shifted_date(match, today, -((today.weekday() - weekday - 1) % 7 + 1))
        elif today.weekday() + ahead > 6:
            yield from _shifted_date(match, today, ahead)


_Rule = Callable[[str, date], _Matches]

_DIGIT_RULES: tuple[_Rule, ...] = (_numeric_dates, _month_name_dates)
_WORD_RULES: tuple[_Rule, ...] = (_relative_days, _relative_weeks, _counted_offsets, _relative_weekdays)
_DIGIT, _WORD = re.compile(r"\d"), re.compile(r"[a-z]+")
_LAST_WORDS_OF_DAYS = {_WORD.findall(phrase)[-1] for phrase in DAY_WORDS}
_WORDS_OF_DATES = frozenset({*WEEKDAYS, *DAYS_PER_UNIT, *_LAST_WORDS_OF_DAYS})
"""One of these is in every match of the word rules: most texts have none, and the patterns take ten times as long."""


def _has_other_meaning(match: re.Match[str], text: str, is_french: bool) -> bool:
    """True if the word means the morning, a greeting or the German `here`."""
    if match.group() == "hier":
        return not is_french
    if match.group() not in ("morgen", "manana"):
        return False
    is_greeting = match.start() == 0 and _AFTER_GREETING.match(text, match.end())
    return bool(is_greeting or _OTHER_MEANING.search(text, max(0, match.start() - 9), match.start()))


def _shifted_date(match: re.Match[str], today: date, days: int) -> _Matches:
    try:
        yield match.start(), today + timedelta(days)
    except OverflowError:
        return


def _valid_date(match: re.Match[str], year: int, month: int, day: int) -> _Matches:
    try:
        yield match.start(), date(year, month, day)
    except ValueError:
        return


DateRange = tuple[int, int]
"""First and last day, both included, as `date.toordinal` counts."""

MAX_QUESTION_CHARS = 4096

MAX_YEARS = 32
"""Latest years to apply a month without a year to."""

_ALL_MONTHS = {**MONTHS, **MONTHS_IN_ITALIAN_AND_PORTUGUESE}
_MONTH_NAMES = "|".join(sorted(_ALL_MONTHS, reverse=True))

_MONTH_OF_QUESTION = re.compile(
    rf"(?:\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|\.)?[ ](?:of[ ]|de[ ])?)?\b(?P<month>{_MONTH_NAMES})\b"
    r"(?:[ ](?P<after>\d{1,2})(?:st|nd|rd|th)?\b(?![:.]\d))?(?:,?[ ](?:de[ ]|of[ ])?(?P<year>(?:19|20)\d\d))?"
)
_YEAR_OF_QUESTION = re.compile(r"\b(?P<year>(?:19|20)\d\d)\b")
_BEFORE_A_MONTH = re.compile(r"\b(?:in|of|since|until|by|during|last|early|late|im|seit|en|de|em|ab)[ ]$")


def find_date_ranges(question: str, years: Sequence[int]) -> list[DateRange]:
    """Return the named months and days, or without any the named years."""
    text = fold(question[:MAX_QUESTION_CHARS])
    ranges = [
        date_range
        for match in _MONTH_OF_QUESTION.finditer(text)
        for date_range in _month_ranges(match, text, years[-MAX_YEARS:])
    ]
    years_named = (int(match["year"]) for match in _YEAR_OF_QUESTION.finditer(text))
    return ranges or [(date(year, 1, 1).toordinal(), date(year, 12, 31).toordinal()) for year in years_named]


def _month_ranges(match: re.Match[str], text: str, years: Sequence[int]) -> list[DateRange]:
    day = match["day"] or match["after"]
    if match["month"] in AMBIGUOUS_MONTHS and not (day or match["year"]):
        start = match.start("month")
        if not _BEFORE_A_MONTH.search(text, max(0, start - 8), start):
            return []
    month = _ALL_MONTHS[match["month"]]
    wanted = [int(match["year"])] if match["year"] else years
    # The day, or the whole month without one; nothing in a year in which the month is shorter.
    number = int(day or 0)
    return [
        (date(year, month, number or 1).toordinal(), date(year, month, number or last).toordinal())
        for year in wanted
        if number <= (last := calendar.monthrange(year, month)[1])
    ]
