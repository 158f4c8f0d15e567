"""The items of a text, read before they are needed. Pure.

Reading a page takes a tenth of a second: it is done beside the event loop. The memory may change meanwhile: what was
read counts for the very text and surroundings that it was read of, otherwise the text is read again.
"""

from datetime import datetime
from typing import NamedTuple, Self

from modestream_client.vocabulary import Role

from agents.rules.cues.labels import has_text_signals
from agents.rules.items.extracted_item import ExtractedItem
from agents.rules.items.extracting import Analysis, analyse
from schemas.state.memories import Memory, Origin, Resource
from schemas.state.understanding import Understanding


class ReadSource(NamedTuple):
    """All that items depend on, besides a model's answer."""

    text: str
    resources: tuple[Resource, ...]
    origin: Origin
    role: Role | None
    speaker: str | None
    occurred_at: datetime

    @classmethod
    def of(cls, memory: Memory) -> Self:
        """Return what the items of a memory depend on."""
        return cls(*(getattr(memory, name) for name in cls._fields))


class ReadText(NamedTuple):
    """Items and what they were read of."""

    source: ReadSource
    understanding: Understanding | None
    items: list[ExtractedItem]


def analysis_of(memory: Memory, read: ReadText | None, understanding: Understanding | None = None) -> Analysis:
    """Return the analysis of a memory, from what was read if that was of the same text and answer."""
    if read is None or (read.source, read.understanding) != (ReadSource.of(memory), understanding):
        return analyse(memory, understanding)
    return Analysis(read.items, has_text_signals(memory))
