"""The part of a long memory that must not be dropped: the sentences for which it is kept. Pure."""

from agents.rules.cues.labels import SentenceLabel, sentences_with_labels
from schemas.memories import Memory

EXCERPT_SEPARATOR = " \u2026 "
"""Between two parts that do not follow on each other."""

EXCERPT_EDGE_CHARS = 300
"""Characters of the beginning, and of the end, of a text without such a sentence: a trace ends in what failed."""


def excerpt_of(memory: Memory, label: SentenceLabel) -> str | None:
    """The sentences that have the mark, or else beginning and end; None where that is no less than the text."""
    found = EXCERPT_SEPARATOR.join(part.strip() for part in sentences_with_labels(memory.text, label))
    excerpt = (
        found
        or f"{memory.text[:EXCERPT_EDGE_CHARS].rstrip()}{EXCERPT_SEPARATOR}{memory.text[-EXCERPT_EDGE_CHARS:].lstrip()}"
    )
    return excerpt if len(excerpt) < len(memory.text) else None
