"""Collects what a reader finds in a file: blocks of text with their pages, up to the limit of characters."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat

from schemas.state.files import FileText, ReadFailed
from streams.adapters.files.segments import Block, cut_segments, paragraphs

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
        """Let what follows be on this page, from 1; of an attachment no page is noted."""
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
    """Return a text of the same length without characters that are none."""
    return _UNSHOWN.sub(" ", text)
