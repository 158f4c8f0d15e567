"""The part of a long memory that must not be dropped: the sentences for which it is kept. Pure."""

from agents.rules.cues.labels import Mark, marked_parts
from schemas.memories import Memory

BETWEEN = " \u2026 "
"""Between two parts that do not follow on each other."""

END = 300
"""Characters of the beginning, and of the end, of a text without such a sentence: a trace ends in what failed."""


def excerpt_of(memory: Memory, mark: Mark) -> str | None:
    """The sentences that have the mark, or else beginning and end; None where that is no less than the text."""
    found = BETWEEN.join(part.strip() for part in marked_parts(memory.text, mark))
    excerpt = found or f"{memory.text[:END].rstrip()}{BETWEEN}{memory.text[-END:].lstrip()}"
    return excerpt if len(excerpt) < len(memory.text) else None
