"""Collects a reader's results: blocks of text with their pages, up to the limit of characters."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise, repeat

from agents.rules.text.passages import chunk_text, stripped_span
from schemas.state.files import FileText, ReadFailed, Segment

MAX_SEGMENT_CHARS = 1200
"""About 300 tokens, as many as an embedder reads of a text."""

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


# Short neighbours are one segment, so that a list is not a memory for each line; a long block is several, cut between
# sentences. Time is linear in the text.
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


_UNSHOWN = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""Characters that no text has, and that stores and JSON do not keep."""

MAX_PAGES = 20_000

CAPTION = "caption"
TRANSCRIBE = "transcribe"
"""The roles of profiles that see and hear."""


@dataclass(frozen=True, slots=True)
class MediaPiece:
    """An image or a piece of sound for a model to read; seconds are those of the whole sound."""

    content: bytes
    name: str
    role: str
    """That of the model: a name is the file's own, and may say anything."""
    start_s: float = 0.0
    end_s: float | None = None


class TextBuilder:
    """The text of one file, as it grows."""

    def __init__(
        self,
        max_chars: int,
        roles: Iterable[str],
        note_progress: Callable[[], None],
        send: Callable[[MediaPiece], None],
    ) -> None:
        """`roles`: those that a model can be asked for; `send` gives one a piece."""
        self.max_chars = max_chars
        self.roles = frozenset(roles)
        self.send = send
        self.page: int | None = None
        self.seconds: float | None = None
        self.depth = 0
        """Files around the one that is read: an e-mail around its attachment."""
        self.note_progress = note_progress
        self._parts: list[str] = []
        self._blocks: list[Block] = []
        self._length = 0

    @property
    def is_full(self) -> bool:
        """True if there was more text than there may be."""
        return self._length > self.max_chars

    def begin_page(self, number: int) -> None:
        """Start a page, counted from 1; attachments have no pages."""
        if number > MAX_PAGES:
            raise ReadFailed("too_large", f"The file has more than {MAX_PAGES:,} pages.")
        self.note_progress()
        if not self.depth:
            self.page = number

    def add(self, text: str, *, begins_section: bool = False, gap: str = "\n\n") -> None:
        """Add a block; `gap` separates it from the former one."""
        if text := _clean(text).strip():
            start = self._append(text, gap)
            self._blocks.append(Block(start, start + len(text), self.page, begins_section=begins_section))

    def add_row(self, cells: Sequence[str], header: Sequence[str] | None) -> None:
        """Add a row of a table, each cell with its column's name: so a row is understood without the others."""
        names = chain(header or (), repeat(""))
        named = [f"{name}: {cell}" if name else cell for name, cell in zip(names, cells, strict=False) if cell]
        self.add("; ".join(named), gap="\n")

    def add_paragraphs(self, text: str, *, headings: bool = False) -> None:
        text = _clean(text)
        start = self._append(text, "\n\n")
        self._blocks.extend(
            replace(block, start=start + block.start, end=start + block.end, page=self.page)
            for block in paragraphs(text, headings=headings)
        )

    def finish(self, reader: str, pages: int | None = None) -> FileText:
        text = "".join(self._parts)
        return FileText(text, reader, cut_segments(text, self._blocks), pages, self.seconds)

    def _append(self, text: str, gap: str) -> int:
        if not self._length:
            gap = ""
        start = self._length + len(gap)
        self._length = start + len(text)
        if self._length > self.max_chars:
            raise too_long(self.max_chars)
        self._parts += (gap, text)
        return start


def too_long(max_chars: int) -> ReadFailed:
    return ReadFailed("too_large", f"The file has more than {max_chars:,} characters of text.")


def _clean(text: str) -> str:
    """Replace unprintable characters by spaces; the text keeps its length."""
    return _UNSHOWN.sub(" ", text)
