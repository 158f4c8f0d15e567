"""Entries of a context: what one memory, or one text of the request itself, shows to the model. Pure.

The text of a turn's resources follows its content. A text that would take too much room is cut to an excerpt: the
sentences that make it sticky, or the passages that have most of the query's terms.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple, Self

from modestream_client.vocabulary import Role

from agents.rules.context.excerpts import EXCERPT_SEPARATOR
from agents.rules.cues.labels import SentenceLabel, sentences_with_labels
from agents.rules.text.passages import lexical_text
from schemas.messages.assemble import RequestText
from schemas.state.memories import Memory

EXCERPT_EDGE_CHARS = 300
"""Characters kept of the beginning and of the end of a text without such a sentence; a trace ends with the error."""


class Entry(NamedTuple):
    """One text of a context. `memory_id` is None for a text of the request; `excerpt`: only a part of the text.

    `changed_at`: a later statement, of this time, has replaced one of the text.
    `role` and `speaker` are None for a distilled memory. Entries of the same time are in the order of `source`.
    """

    memory_id: str | None
    role: Role | None
    speaker: str | None
    occurred_at: datetime
    source: int
    text: str
    excerpt: bool = False
    changed_at: datetime | None = None

    @classmethod
    def of(cls, memory: Memory, excerpt: str | None = None, changed_at: datetime | None = None) -> Self:
        """Return the entry of a memory, with its whole text or an excerpt."""
        text = lexical_text(memory) if excerpt is None else excerpt
        about = memory.memory_id, memory.role, memory.speaker, memory.occurred_at, memory.source
        return cls(*about, text, excerpt is not None, changed_at)

    @classmethod
    def of_request(cls, texts: Iterable[RequestText], now: datetime) -> list[Self]:
        """Return the entries of texts that the request brings along, in their order."""
        return [cls(None, one.role, None, now, place, one.content) for place, one in enumerate(texts)]


def excerpt_of(memory: Memory, label: SentenceLabel) -> str | None:
    """Return the sentences with the label, else beginning and end; None if that is not shorter than the whole entry."""
    found = EXCERPT_SEPARATOR.join(part.strip() for part in sentences_with_labels(memory.text, label))
    edges = memory.text
    if len(edges) > 2 * EXCERPT_EDGE_CHARS:
        edges = f"{edges[:EXCERPT_EDGE_CHARS].rstrip()}{EXCERPT_SEPARATOR}{edges[-EXCERPT_EDGE_CHARS:].lstrip()}"
    excerpt = found or edges
    return excerpt if len(excerpt) < len(lexical_text(memory)) else None
