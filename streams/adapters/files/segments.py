"""Cut a file's text into segments at its natural places. Pure; time is linear in the text.

A reader adds blocks: paragraphs, rows, slides, or a whole page. Short neighbours are one segment, so that a list is not
a memory for each line; a long block is several, cut between sentences.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from agents.rules.text.passages import chunk_text, stripped_span
from schemas.state.files import Segment

MAX_SEGMENT_CHARS = 1200
"""Some 300 tokens: what an embedder reads of a text."""

JOINED_CHARS = 600
"""Neighbouring blocks are joined up to this length."""

MIN_SECTION_CHARS = 100
"""A shorter section is joined with the next: a file of headings is not a memory for each."""

_PARAGRAPH_GAP = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")
_HEADING = re.compile(r"(?:^|(?<=\n))(?= {0,3}#{1,6}\s)")


@dataclass(frozen=True, slots=True)
class Block(Segment):
    """A part of a text that is not cut unless it is too long. `begins_section`: a heading, or the like, begins it."""

    begins_section: bool = False


def paragraphs(text: str, *, headings: bool = False) -> Iterator[Block]:
    """Yield the paragraphs of a text; `headings`: a line of Markdown with number signs begins a section."""
    start = 0
    for gap in _PARAGRAPH_GAP.finditer(text):
        yield from _sections(text, start, gap.start(), headings=headings)
        start = gap.end()
    yield from _sections(text, start, len(text), headings=headings)


def _sections(text: str, start: int, end: int, *, headings: bool) -> Iterator[Block]:
    starts = {match.start() for match in _HEADING.finditer(text, start, end)} if headings else set()
    cuts = sorted({start, *starts, end})
    for left, right in pairwise(cuts):
        span = stripped_span(text, left, right)
        if span.start < span.end:
            yield Block(span.start, span.end, begins_section=left in starts)


def cut_segments(text: str, blocks: Iterator[Block] | list[Block]) -> tuple[Segment, ...]:
    """Return the segments of a text: short blocks of one page joined, long ones cut."""
    segments: list[Segment] = []
    joined: Block | None = None
    for block in blocks:
        if joined is not None and _are_one(joined, block):
            joined = replace(joined, end=block.end, end_s=block.end_s)
            continue
        if joined is not None:
            segments.extend(_cut(text, joined))
        joined = block
    if joined is not None:
        segments.extend(_cut(text, joined))
    return tuple(segments)


def _are_one(former: Block, block: Block) -> bool:
    # A pause of speech always counts.
    if block.begins_section and (block.start_s is not None or former.end - former.start >= MIN_SECTION_CHARS):
        return False
    return former.page == block.page and block.end - former.start <= JOINED_CHARS


def _cut(text: str, block: Block) -> Iterator[Segment]:
    whole = Segment(block.start, block.end, block.page, block.start_s, block.end_s)
    pieces = chunk_text(text[block.start : block.end], MAX_SEGMENT_CHARS)
    if not pieces:
        yield whole
    for piece in pieces:
        yield replace(whole, start=block.start + piece.start, end=block.start + piece.end)
