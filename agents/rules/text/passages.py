"""Cut a long text into passages, and build the texts of a memory for embedding and for the lexical index. Pure.

Spans are in code points, in order, without overlap, and cover all but the white space between them. Time is linear in
the text. The same text is always cut alike: spans are computed on demand, and never stored. A long turn is embedded
passage by passage, any other memory as one text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable

from agents.rules.text.sentences import Span, stripped_span
from schemas.state.memories import Memory, PublishedResource

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
