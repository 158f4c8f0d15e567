"""Find the sentences of a turn that limit themselves to a date that has passed. Pure.

Enters: a text, when it was said, and the day it is now. Leaves: spans of code points. Guaranteed: time linear in the
text. A sentence expires if it names its end ("until 3 May", "before Saturday", "today") and all its dates lie before
now; one that recurs ("on Fridays") or has only a beginning ("from 1 April") does not.
"""

import re
from datetime import date, datetime, timedelta

from agents.rules.text.date_words import MONTHS, WEEKDAYS
from agents.rules.text.dates import find_dates
from agents.rules.text.sentences import Span, sentence_spans
from agents.rules.text.tokenizer import fold

_WEEKDAY = "|".join(sorted(WEEKDAYS, key=len, reverse=True))
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_UNTIL = (
    r"(?:until|till|before|by|through|no later than|not later than|spatestens(?: am| bis)?|bis(?: zum)?|vor dem|"
    r"hasta(?: el)?|antes del?|jusqu'(?:a|au)|avant(?: le)?)"
)
_ENDS = re.compile(
    rf"\b{_UNTIL}\b|\b(?:today|tonight|tomorrow|this (?:week|weekend|morning|afternoon|evening)|heute|hoy|aujourd'hui|"
    rf"diese woche|esta semana|cette semaine)\b|\bon (?:the )?\d{{1,2}}(?:st|nd|rd|th)? (?:of )?(?:{_MONTH})\b|"
    rf"\bon (?:{_MONTH}) \d|\bam \d{{1,2}}\. ?(?:{_MONTH}|\d)"
)
"""Words by which a sentence names its end."""

_WEEKDAY_END = re.compile(rf"\b{_UNTIL} (?:the |next |kommenden |el |le )?(?P<day>{_WEEKDAY})\b(?P<after> after)?")
_WEEK = re.compile(r"\b(?:this week|this weekend|diese woche|esta semana|cette semaine)\b")

DAYS_PER_WEEK = 7


def expired_spans(text: str, occurred_at: datetime, today: date) -> list[Span]:
    """Return the sentences of a text said at `occurred_at` that no longer hold on the day `today`."""
    return [span for span in sentence_spans(text) if _is_past(text[span.start : span.end], occurred_at, today)]


def _is_past(sentence: str, occurred_at: datetime, today: date) -> bool:
    folded = " ".join(fold(sentence).split())
    if not _ENDS.search(folded):
        return False
    ends = [date.fromisoformat(day) for day in find_dates(sentence, occurred_at)]
    ends += [_weekday_end(match, occurred_at.date()) for match in _WEEKDAY_END.finditer(folded)]
    if _WEEK.search(folded):
        ends.append(occurred_at.date() + timedelta(DAYS_PER_WEEK - 1 - occurred_at.weekday()))
    return bool(ends) and max(ends) < today


def _weekday_end(match: re.Match[str], said_on: date) -> date:
    """Return the next such weekday after a day, a week later for `the Monday after`."""
    ahead = (WEEKDAYS[match["day"]] - said_on.weekday() - 1) % DAYS_PER_WEEK + 1
    return said_on + timedelta(ahead + (DAYS_PER_WEEK if match["after"] else 0))
