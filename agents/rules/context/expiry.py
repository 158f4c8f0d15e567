"""Find the sentences that no longer hold: past their own date, or taken back by a later statement."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta

from agents.rules.cues.labels import SentenceLabel, sentences_with_labels
from agents.rules.text.dates import MONTHS, WEEKDAYS, find_dates
from agents.rules.text.overlap import content_stems, stem_coverage
from agents.rules.text.sentences import Span, sentence_spans
from agents.rules.text.tokenizer import fold

_WEEKDAY = "|".join(sorted(WEEKDAYS, key=len, reverse=True))
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_UNTIL = (
    r"(?:until|till|before|by|through|no later than|not later than|spatestens(?: am| bis)?|bis(?: zum)?|vor dem|"
    r"hasta(?: el)?|antes del?|jusqu'(?:a|au)|avant(?: le)?)"
)
_DATE = rf"(?:the |on |end of |this |next |el |le |den |am ){{0,2}}(?:\d|(?:{_MONTH})\b)(?:[^ ,;]* ?){{1,4}}"
_END_DATE = re.compile(rf"\b{_UNTIL} (?P<date>{_DATE})")
"""An end word with a date directly after it."""

_DAY = (
    r"(?:today|tonight|tomorrow|this (?:week|weekend|morning|afternoon|evening)|heute|hoy|aujourd'hui|diese woche|"
    r"esta semana|cette semaine)"
)
_CLOSE = re.compile(
    rf"(?<!as of )(?<!from )(?<!since )(?<!starting )(?<!begins )(?<!ab )\b{_DAY}(?: only)?(?=[.,;!]*$|[,;] )|"
    rf"^(?:please )?(?:don't|do not|no|nothing|nobody)\b[^,;]*\bon (?:the )?(?:\d|(?:{_MONTH})\b)[^,;]{{1,20}}$|"
    rf"\b(?:just|only|for) {_DAY}\b|^{_DAY}\b"
)
"""A day at the close of a clause, or a date of one prohibition."""

_WEEKDAY_END = re.compile(rf"\b{_UNTIL} (?:the |next |kommenden |el |le )?(?P<day>{_WEEKDAY})\b(?P<after> after)?")
_WEEK = re.compile(r"\b(?:this week|this weekend|diese woche|esta semana|cette semaine)\b")

DAYS_PER_WEEK = 7


def expired_spans(text: str, occurred_at: datetime, today: date) -> list[Span]:
    """Return the sentences of a text said at `occurred_at` that no longer hold on the day `today`."""
    return [span for span in sentence_spans(text) if _is_past(text[span.start : span.end], occurred_at, today)]


def _is_past(sentence: str, occurred_at: datetime, today: date) -> bool:
    try:
        return (last := max(_ends(sentence, occurred_at), default=None)) is not None and last < today
    except OverflowError:
        # An end after the year 9999.
        return False


def _ends(sentence: str, occurred_at: datetime) -> Iterator[date]:
    folded = " ".join(fold(sentence).split())
    for match in _END_DATE.finditer(folded):
        yield from map(date.fromisoformat, find_dates(match["date"], occurred_at))
    for match in _WEEKDAY_END.finditer(folded):
        # The next such weekday after a day, a week later for `the Monday after`.
        said_on = occurred_at.date()
        ahead = (WEEKDAYS[match["day"]] - said_on.weekday() - 1) % DAYS_PER_WEEK + 1
        yield said_on + timedelta(ahead + (DAYS_PER_WEEK if match["after"] else 0))
    closing = _CLOSE.search(folded)
    if closing is None or sentences_with_labels(sentence, SentenceLabel.SAFETY):
        return
    if _WEEK.search(closing[0]):
        yield occurred_at.date() + timedelta(DAYS_PER_WEEK - 1 - occurred_at.weekday())
    else:
        yield from map(date.fromisoformat, find_dates(closing[0], occurred_at))


MIN_COVERAGE = 0.5
"""Minimum share of a rule's content stems in the statement that takes it back."""

MIN_SHARED_STEMS = 2
"""Minimum number of shared stems; one is enough if the rule has no other."""


def taken_back_spans(
    text: str, labels: SentenceLabel, statements: Sequence[frozenset[str]], *, by_number: bool = False
) -> list[Span]:
    """Return the sentences of a text with one of these labels that one of the later statements takes back.

    `statements` are the content stems of each. `by_number`: only statements with another number than the sentence do.
    """
    return [
        span
        for span in sentence_spans(text)
        if _is_covered(text[span.start : span.end], statements, by_number=by_number)
        and sentences_with_labels(text[span.start : span.end], labels)
    ]


def _is_covered(sentence: str, statements: Sequence[frozenset[str]], *, by_number: bool) -> bool:
    stems = content_stems(sentence)
    needed = min(MIN_SHARED_STEMS, len(stems))
    return any(
        0 < needed <= len(stems & statement)
        and stem_coverage(statement, stems) >= MIN_COVERAGE
        and (not by_number or (_has_number(stems - statement) and _has_number(statement - stems)))
        for statement in statements
    )


def _has_number(stems: Iterable[str]) -> bool:
    return any(stem[0].isdigit() for stem in stems)
