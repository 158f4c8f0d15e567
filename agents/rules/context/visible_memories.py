"""The memories that a context may contain, with their current labels. Pure.

Memories are numbers, as in `MemoryColumns`. A contradicted item points to the outdated sentence of its turn; items
superseded by consolidation are still true, and outdate nothing.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Self

import numpy as np

from agents.rules.cues.labels import NO_LABELS, SentenceLabel, label_memory, sentences_with_labels
from agents.rules.index.columns import MISSING, ColumnArrays, IntArray, Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.text.dates import MONTHS, WEEKDAYS, find_dates
from agents.rules.text.overlap import content_stems, stem_coverage
from agents.rules.text.passages import Span, sentence_spans
from agents.rules.text.tokenizer import fold
from schemas.models.vectors import MemoryFilter
from schemas.moments import DAYS_PER_WEEK
from schemas.state.memories import Memory

MAX_CONVERSATION_TURNS = 100_000
"""Turns of a conversation that are considered; more than any real conversation has."""


@dataclass(frozen=True, slots=True)
class VisibleSet:
    """Memories of a boundary: `in_scope` are those of the scope, `in_modes` those of the context's modes among them.

    `admitted` are those of them that its filters admit. `in_conversation` belong to the request's conversation.
    `time_rank` numbers the memories in scope by time, from 0; `MISSING` for others.
    """

    columns: ColumnArrays
    in_scope: Mask
    in_modes: Mask
    admitted: Mask
    in_conversation: Mask
    time_rank: IntArray

    @classmethod
    def of(cls, memory_columns: MemoryColumns, where: MemoryFilter, conversation: str | None) -> Self:
        """Return the memories in a request's scope, of all modes; the conversation is optional."""
        columns, admitted = memory_columns.columns, memory_columns.admitted(where)
        in_conversation = np.zeros(len(admitted), np.bool_)
        if conversation is not None:
            turns = memory_columns.latest(where, conversation, MAX_CONVERSATION_TURNS)
            in_conversation[[memory_columns.number_of[turn] for turn in turns]] = True
        order = columns.by_time(np.flatnonzero(admitted))
        time_rank = np.full(len(admitted), MISSING)
        time_rank[order] = np.arange(len(order))
        return cls(columns, admitted, admitted, admitted, in_conversation, time_rank)

    def restricted(self, in_modes: Mask, admitted: Mask) -> Self:
        """Return the set restricted to these memories; safety requirements remain visible in the whole scope."""
        return replace(
            self,
            in_modes=self.in_scope & in_modes,
            admitted=self.in_scope & admitted,
            in_conversation=self.in_conversation & admitted,
        )

    def with_labels(self, labels: Mapping[int, SentenceLabel]) -> Self:
        """Return the set with some labels replaced, by number."""
        if not labels:
            return self
        column = self.columns.labels.copy()
        column[list(labels)] = [int(label) for label in labels.values()]
        return replace(self, columns=replace(self.columns, labels=column))

    def labelled(self, any_of: SentenceLabel, by: SentenceLabel = NO_LABELS, *, of_all_modes: bool = False) -> Mask:
        """Return the admitted memories with one of these labels, said by one of these roles (none given: any role)."""
        among = self.in_scope if of_all_modes else self.admitted
        mask: Mask = among & ((self.columns.labels & any_of.value) != 0)
        if by:
            mask &= (self.columns.labels & by.value) != 0
        return mask

    def newest_first(self, mask: Mask) -> list[int]:
        """Return the numbers of these memories, newest first."""
        numbers = np.flatnonzero(mask)
        order: list[int] = numbers[np.argsort(-self.time_rank[numbers], kind="stable")].tolist()
        return order

    def conversation_first(self, mask: Mask) -> list[int]:
        """Return the numbers of these memories, the conversation's before others, newest first in each group."""
        return [*self.newest_first(mask & self.in_conversation), *self.newest_first(mask & ~self.in_conversation)]

    def age_of(self, memory_columns: MemoryColumns) -> Callable[[str], int]:
        """Return a sort key of memory ids, oldest first; unknown ids come before all."""

        def age(memory_id: str) -> int:
            number = memory_columns.number_of.get(memory_id, MISSING)
            return int(self.time_rank[number]) if 0 <= number < len(self.time_rank) else MISSING

        return age


CURRENT_STATE_LABELS = SentenceLabel.SAFETY | SentenceLabel.CORRECTION | SentenceLabel.CONSTRAINT | SentenceLabel.ERROR
CURRENT_STATE_LABELS |= SentenceLabel.PREFERENCE | SentenceLabel.STANDING_PREFERENCE | SentenceLabel.INSTRUCTION
CURRENT_STATE_LABELS |= SentenceLabel.DECISION | SentenceLabel.GOAL | SentenceLabel.PENDING
"""Labels that qualify a memory for sections on the current state."""


def is_contradicted(item: Memory) -> bool:
    return item.superseded_by is not None and item.item is not None and item.item.valid_until is not None


def outdated_spans(memory_id: str, outdated: Iterable[Memory]) -> list[tuple[int, int]]:
    """Return the spans of a turn's text behind these items, given as first code point and end."""
    evidence = (quote for item in outdated for quote in item.evidence)
    return [(quote.start, quote.end) for quote in evidence if quote.memory_id == memory_id and quote.resource is None]


def labels_without(turn: Memory, spans: Iterable[tuple[int, int]]) -> SentenceLabel:
    """Return the labels of the turn without these spans of its text, given as first code point and end."""
    text, start = "", 0
    for begins, ends in sorted(spans):
        text += turn.text[start:begins]
        start = max(start, ends)
    return label_memory(turn.model_copy(update={"text": text + turn.text[start:]}))


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


def expired_spans(text: str, occurred_at: datetime, today: date) -> list[Span]:
    """Return the sentences of a text said at `occurred_at` that are no longer valid on the day `today`."""
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
    """Return the sentences of a text that have one of these labels and are revoked by a later statement.

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
