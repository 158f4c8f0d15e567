"""Cut a text into sentences and passages, and build the texts of a memory for embedding and the lexical index. Pure.

Spans are in code points, in order, without overlap; those of passages cover all but the white space between them. Time
is linear in the text. The same text is always cut alike: spans are computed on demand, and never stored. A long turn is
embedded passage by passage, any other memory as one text. Quotations, fenced code and tables are not statements of the
writer.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import NamedTuple

from agents.rules.text.dates import MONTHS
from agents.rules.text.tokenizer import fold
from schemas.state.memories import Memory, PublishedResource

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


MAX_PASSAGE_CHARS = 400
"""Characters of a passage: a few sentences, about 100 tokens."""

MAX_UNCUT_CHARS = 480
"""Maximum length of a text that is one passage: a second one would hold a sentence at most."""

MAX_PASSAGES = 63
"""Maximum passages of one text: bits of a 64-bit word. A text over about 12,000 characters has longer passages."""

CUTTING = f"{MAX_PASSAGE_CHARS}-1"
"""Names these rules in the fingerprint of a vector space. Change it with them: vectors are then rebuilt."""

_LINE = re.compile(r"[^\n]*(?:\n|$)")
_HEADING = re.compile(r"\s{0,3}(?:#{1,6}\s|\*\*[^*\n]{1,80}\*\*:?\s*$)")
_HEADING_STARTS = "#*"
_ITEM = re.compile(r"(?:[-*+\u2022]|\d{1,3}[.)])\s")
_FENCES = ("```", "~~~")
_SENTENCE_END = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\"')\u201d\u2019]{0,2}(?=\s)\s|[\u3002\uff01\uff1f]")

SENTENCE_END_CHARS = 4
"""Characters of the longest sentence end, the space included."""

_PARAGRAPH, _LIST_ITEM, _LINE_START = range(3)
"""Kinds of lines to cut before, the best first."""


def cut_passages(text: str) -> list[Span]:
    """Return the passages of a text longer than `MAX_UNCUT_CHARS`; a shorter text has none.

    Cuts before a paragraph, a heading, or a block of code if one begins in the second part of the passage, else before
    a list item, at a line end, at a sentence end, at a space.
    """
    if len(text) <= MAX_UNCUT_CHARS:
        return []
    line_starts = _cut_places(text)
    size = max(MAX_PASSAGE_CHARS, 2 * len(text) // MAX_PASSAGES)
    spans: list[Span] = []
    start = 0
    while len(text) - start > size * MAX_UNCUT_CHARS // MAX_PASSAGE_CHARS and len(spans) < MAX_PASSAGES - 1:
        end = _next_cut(text, start, size, line_starts)
        spans.append(Span(start, end))
        start = end
    spans.append(Span(start, len(text)))
    return [span for span in (stripped_span(text, *span) for span in spans) if span.start < span.end]


def _next_cut(text: str, start: int, size: int, line_starts: tuple[list[int], ...]) -> int:
    """Return the last of the best places in the second part of a passage of at most `size` from `start` on."""
    first, limit = start + size * 2 // 5, start + size
    for ends in line_starts:
        index = bisect_right(ends, limit) - 1
        if index >= 0 and ends[index] >= first:
            return ends[index]
    # Sentence ends are searched only here: in a list or in code none is needed.
    near = _SENTENCE_END.finditer(text, first - SENTENCE_END_CHARS, limit + SENTENCE_END_CHARS)
    if sentence_ends := [match.end() for match in near if first <= match.end() <= limit]:
        return sentence_ends[-1]
    space = text.rfind(" ", first, limit)
    return space + 1 if space > 0 else limit


def _cut_places(text: str) -> tuple[list[int], ...]:
    """Return the starts of lines of each kind, in order."""
    starts: tuple[list[int], ...] = ([], [], [])
    is_fenced, after_blank, after_heading = False, False, False
    for match in _LINE.finditer(text):
        start, line = match.start(), match.group()
        words = line.lstrip()
        if not words:
            after_blank = True
            continue
        is_fence = words.startswith(_FENCES)
        is_heading = not is_fenced and words[0] in _HEADING_STARTS and bool(_HEADING.match(line))
        if start and not after_heading:
            begins_block = is_heading or (is_fence and not is_fenced) or (after_blank and not is_fenced)
            kind = _PARAGRAPH if begins_block else _LIST_ITEM if _ITEM.match(words) and not is_fenced else _LINE_START
            starts[kind].append(start)
        is_fenced ^= is_fence
        after_blank, after_heading = False, is_heading
    return starts


MAX_CONTENT_CHARS = 2048
"""Maximum embedded characters of an uncut text: more than the model of any preset reads of plain prose."""

MAX_CAPTION_CHARS = 512
"""Maximum embedded characters of one resource's text, so that a transcript does not crowd out the rest."""

MAX_EMBEDDED_CHARS = 8192
"""Maximum embedded characters in all: a model that reads 8,192 tokens would take gigabytes for a hundred captions."""


PASSAGE_END = "\x1e"
"""Separator after each passage of a long turn in its text to embed. White space, so that no passage ends with it."""


def embedding_text(memory: Memory) -> str:
    """Return the text to embed: the content, then each resource's text. Without the speaker: names blur the meaning.

    For a turn that is cut into passages it consists of all passages. The hash of the embedded content covers it, so it
    differs between turns that are cut at other places.
    """
    if passages := embedded_passages(memory):
        return "".join(f"{passage}{PASSAGE_END}" for passage in passages)
    return _joined(memory.text, memory.resources, MAX_CONTENT_CHARS, MAX_CAPTION_CHARS)[:MAX_EMBEDDED_CHARS]


def memory_passages(memory: Memory) -> list[Span]:
    """Return the passages of a long turn's own text; empty for any other memory, as items and summaries are not cut."""
    return cut_passages(memory.text) if memory.origin == "said" else []


def embedded_passages(memory: Memory) -> list[str]:
    """Return the texts to embed of a long turn: its passages, then one with the texts of its resources, if it has any.

    Empty for any other memory.
    """
    spans = memory_passages(memory)
    captions = [_caption(resource, MAX_CAPTION_CHARS) for resource in memory.resources if resource.text]
    passages = [memory.text[start:end] for start, end in spans]
    return [*passages, " ".join(captions)[:MAX_EMBEDDED_CHARS]] if passages and captions else passages


def passage_starts(memory: Memory) -> tuple[int, ...]:
    """Return the offset, in the text to index, of each of a long turn's embedded passages; empty for other memories."""
    starts = [span.start for span in memory_passages(memory)]
    has_captions = bool(starts) and any(resource.text for resource in memory.resources)
    return (*starts, len(memory.text)) if has_captions else tuple(starts)


def lexical_text(memory: Memory) -> str:
    """Return the text to index: the whole content and the whole text of each resource."""
    return whole_text(memory.text, memory.resources)


def whole_text(content: str, resources: Iterable[PublishedResource]) -> str:
    """Return the text to index of a turn with this content and these resources."""
    return _joined(content, resources, None, None)


def _joined(
    content: str, resources: Iterable[PublishedResource], max_content: int | None, max_caption: int | None
) -> str:
    captions = [_caption(resource, max_caption) for resource in resources if resource.text]
    return " ".join([content[:max_content], *captions])


def _caption(resource: PublishedResource, max_chars: int | None) -> str:
    kind = (resource.media_type or "").partition("/")[0]
    kind = kind if kind in ("image", "audio", "video") else "file"
    return f"[{kind}: {(resource.text or '')[:max_chars]}]"
