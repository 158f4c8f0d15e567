"""Split a text into sentences or chunks, and normalise sentences for cue matching. Pure.

Spans are in code points, ordered and without overlap. Quotations, fenced code and tables are not statements of the
writer. Time is linear in the text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import repeat
from typing import NamedTuple

from agents.rules.text.dates import MONTHS
from agents.rules.text.tokenizer import fold

MAX_PARSED_CHARS = 8192
"""Maximum characters to parse: speech is shorter, and a page of a log is not a statement."""

_SEPARATOR = re.compile(r"(?<=[.!?\u2026])[\"')\u201d\u2019]{0,2}\s+|\n\s*|;\s+|(?<=\s)[\u2013\u2014-]\s+|\u2014")
"""Separator of sentences: after a full stop, at a line end, at a semicolon or a dash.

White space before a line end or a dash stays with the sentence: to match it would take quadratic time in spaces.
"""

_WORD = re.compile(r"[^\W_]+(?:['\u2019.\-][^\W_]+)*|[,:?!]")
"""A word with its apostrophes and hyphens, or punctuation that cues contain."""


class Sentence(NamedTuple):
    """A folded sentence. `spaced` is `words` with a space before, between and after, so that cues match whole words."""

    words: list[str]
    spaced: str

    @property
    def is_question(self) -> bool:
        """True if it ends with a question mark."""
        return self.words[-1] == "?"


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text as written, in order."""
    return [part for part in _SEPARATOR.split(text[:MAX_PARSED_CHARS]) if part]


def parse_sentence(text: str) -> Sentence:
    """Normalise one sentence for cue matching."""
    words = _WORD.findall(fold(text))
    return Sentence(words, f" {' '.join(words)} ")


def written_words(text: str) -> list[str]:
    """Return the words with case and accents: mostly, but not always, one for each of `Sentence.words`."""
    return _WORD.findall(text)


def parse_sentences(text: str) -> list[Sentence]:
    """Return the normalised sentences of a text in order, without empty ones."""
    return [sentence for sentence in map(parse_sentence, split_sentences(text)) if sentence.words]


MAX_CHUNK_CHARS = 1000
"""Maximum characters of a chunk: about 250 tokens, the input limit of the smaller embedders."""

_END = re.compile(r"(?<![.!?\u2026])[.!?\u2026]++[\"')\u201d\u2019]{0,2}(?=\s|$)")
"""End of a sentence. The look-behind and the possessive quantifier avoid quadratic time on a run of dots."""

_FENCE = "```"
_QUOTED = (">", "|", '"', "\u201c", "\u201e", "\u00ab", "\u2018")
"""Prefixes of a quotation or of a table row."""

_QUOTATION_MARKS = ('"', "\u201c", "\u201d", "\u201e", "\u00ab", "\u00bb")
"""An odd number in a sentence opens or closes a quotation of several sentences."""

_BULLET = re.compile(r"(?:[-*+\u2022]|\d{1,2}[.)]|#{1,6})\s+")
_ABBREVIATED = re.compile(
    r"(?:^|[\s(])(?:[A-Z]|e\.g|i\.e|z\.B|d\.h|u\.a|p\.ej|Dr|Mr|Mrs|Ms|Prof|St|No|Nr|nr|ca|approx|vs|bzw|Sr|Sra|Mme|"
    r"[Ff]ig)$"
)
_DAY = re.compile(r"(?:^|\s)\d{1,2}$")
_WORD_AFTER = re.compile(r"\.\s+([^\W\d_]+)")


class Span(NamedTuple):
    """Code points from `start` up to, not including, `end`."""

    start: int
    end: int


def sentence_spans(text: str) -> list[Span]:
    """Return the sentences of the first `MAX_PARSED_CHARS` characters, without bullets, quotations and code."""
    spans: list[Span] = []
    for line in statement_lines(text):
        bullet = _BULLET.match(text, line.start, line.end)
        start = bullet.end() if bullet else line.start
        ends = [match.end() for match in _END.finditer(text, start, line.end) if not _is_inner_stop(text, match)]
        # A sentence that contains part of a longer quotation, or starts with one, is not the speaker's.
        is_quoted = False
        for end in [*ends, line.end]:
            span = stripped_span(text, start, end)
            start = end
            is_unbalanced = sum(map(text.count, _QUOTATION_MARKS, repeat(span.start), repeat(span.end))) % 2 == 1
            if span.start < span.end and not (is_quoted or is_unbalanced or text.startswith(_QUOTED, span.start)):
                spans.append(span)
            is_quoted ^= is_unbalanced
    return spans


def statement_lines(text: str) -> Iterator[Span]:
    """Yield the lines that are not empty, quoted, code or part of a table."""
    start, is_fenced, length = 0, False, min(len(text), MAX_PARSED_CHARS)
    while start < length:
        end = text.find("\n", start, length)
        end = length if end < 0 else end
        line = stripped_span(text, start, end)
        start = end + 1
        if text.startswith(_FENCE, line.start):
            is_fenced = not is_fenced
        elif not is_fenced and line.start < line.end and not text.startswith(_QUOTED, line.start):
            yield line


def chunk_text(text: str, window: int = MAX_CHUNK_CHARS) -> list[Span]:
    """Cut a text longer than `window` into spans of at most `window`, at sentence ends if possible, else at spaces.

    A shorter text has no chunks.
    """
    if len(text) <= window:
        return []
    ends = [match.end() for match in _END.finditer(text)]
    chunks, start = [], 0
    while len(text) - start > window:
        # The last sentence end in the second half of the window, else its last space, else all of it.
        half, limit = start + window // 2, start + window
        index = bisect_right(ends, limit) - 1
        if index >= 0 and ends[index] > half:
            cut = ends[index]
        else:
            space = max(text.rfind(" ", half, limit), text.rfind("\n", half, limit))
            cut = space + 1 if space > 0 else limit
        chunks.append(stripped_span(text, start, cut))
        start = cut
    chunks.append(stripped_span(text, start, len(text)))
    return [span for span in chunks if span.start < span.end]


def _is_inner_stop(text: str, end: re.Match[str]) -> bool:
    """True if the full stop belongs to an abbreviation or to a day before its month."""
    if end.group() != ".":
        return False
    before = text[max(0, end.start() - 8) : end.start()]
    if _ABBREVIATED.search(before):
        return True
    after = _WORD_AFTER.match(text, end.start()) if _DAY.search(before) else None
    return after is not None and fold(after[1]) in MONTHS


def stripped_span(text: str, start: int, end: int) -> Span:
    """Return this part of a text without the white space at its ends."""
    piece = text[start:end]
    left = start + len(piece) - len(piece.lstrip())
    return Span(left, max(left, start + len(piece.rstrip())))
