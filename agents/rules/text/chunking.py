"""Where the sentences of a text stand, and a long text cut into segments. Pure.

Enters: a text as it was written. Leaves: spans in code points. Guaranteed: spans lie inside the text in order without
overlap, in time linear in the text; what is quoted, fenced as code or part of a table is no sentence of its writer.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import repeat
from typing import NamedTuple

from agents.rules.text.date_words import MONTHS
from agents.rules.text.sentences import MAX_PARSED_CHARS
from agents.rules.text.tokenizer import fold

MAX_CHUNK_CHARS = 1000
"""Characters of a segment at most: some 250 tokens, which is what the smaller embedders read of a text."""

_END = re.compile(r"(?<![.!?\u2026])[.!?\u2026]++[\"')\u201d\u2019]{0,2}(?=\s|$)")
"""The end of a sentence. Without the look-behind and the possessive repetition a row of dots takes quadratic time."""

_FENCE = "```"
_QUOTED = (">", "|", '"', "\u201c", "\u201e", "\u00ab", "\u2018")
"""How a line or a sentence begins that tells what somebody else says, or is a row of a table."""

_MARKS = ('"', "\u201c", "\u201d", "\u201e", "\u00ab", "\u00bb")
"""Quotation marks; an odd number of them in a sentence opens or closes a quotation that goes on."""

_BULLET = re.compile(r"(?:[-*+\u2022]|\d{1,2}[.)]|#{1,6})\s+")
_ABBREVIATED = re.compile(
    r"(?:^|[\s(])(?:[A-Z]|e\.g|i\.e|z\.B|d\.h|u\.a|p\.ej|Dr|Mr|Mrs|Ms|Prof|St|No|Nr|nr|ca|approx|vs|bzw|Sr|Sra|Mme|[Ff]ig)$"
)
_LONGEST_ABBREVIATION = 8
_DAY = re.compile(r"(?:^|\s)\d{1,2}$")
_WORD_AFTER = re.compile(r"\.\s+([^\W\d_]+)")


class Span(NamedTuple):
    """From `start` to before `end`, in code points."""

    start: int
    end: int


def sentence_spans(text: str) -> list[Span]:
    """The sentences of the first `MAX_PARSED_CHARS` characters, without list marks and without what is quoted or code."""
    return [span for line in statement_lines(text) for span in _sentences(text, line)]


def statement_lines(text: str) -> Iterator[Span]:
    """The lines that are neither empty, nor quoted, nor code, nor in a table."""
    start, fenced, length = 0, False, min(len(text), MAX_PARSED_CHARS)
    while start < length:
        end = text.find("\n", start, length)
        end = length if end < 0 else end
        line = _stripped(text, start, end)
        start = end + 1
        if text.startswith(_FENCE, line.start):
            fenced = not fenced
        elif not fenced and line.start < line.end and not text.startswith(_QUOTED, line.start):
            yield line


def chunk_text(text: str, window: int = MAX_CHUNK_CHARS) -> list[Span]:
    """A text longer than a window as spans of at most a window, cut where a sentence ends, or else between words."""
    if len(text) <= window:
        return []
    ends = [match.end() for match in _END.finditer(text)]
    found, start = [], 0
    while len(text) - start > window:
        cut = _cut(text, start, start + window, ends)
        found.append(_stripped(text, start, cut))
        start = cut
    found.append(_stripped(text, start, len(text)))
    return [span for span in found if span.start < span.end]


def _cut(text: str, start: int, limit: int, ends: list[int]) -> int:
    """The last end of a sentence in the second half of the window, else the last space, else the limit."""
    half = start + (limit - start) // 2
    place = bisect_right(ends, limit) - 1
    if place >= 0 and ends[place] > half:
        return ends[place]
    space = max(text.rfind(" ", half, limit), text.rfind("\n", half, limit))
    return space + 1 if space > 0 else limit


def _sentences(text: str, line: Span) -> Iterator[Span]:
    """The sentences of a line that are not, and do not share, a quotation."""
    bullet = _BULLET.match(text, line.start, line.end)
    start = bullet.end() if bullet else line.start
    ends = [match.end() for match in _END.finditer(text, start, line.end) if not _goes_on(text, match)]
    quoted = False
    for end in [*ends, line.end]:
        span = _stripped(text, start, end)
        start = end
        shared = sum(map(text.count, _MARKS, repeat(span.start), repeat(span.end))) % 2 == 1
        if span.start < span.end and not (quoted or shared or text.startswith(_QUOTED, span.start)):
            yield span
        quoted ^= shared


def _goes_on(text: str, end: re.Match[str]) -> bool:
    """Whether the full stop belongs to an abbreviation or to a day before its month."""
    if end.group() != ".":
        return False
    before = text[max(0, end.start() - _LONGEST_ABBREVIATION) : end.start()]
    if _ABBREVIATED.search(before):
        return True
    after = _WORD_AFTER.match(text, end.start()) if _DAY.search(before) else None
    return after is not None and fold(after[1]) in MONTHS


def _stripped(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    left = start + len(piece) - len(piece.lstrip())
    return Span(left, max(left, start + len(piece.rstrip())))
