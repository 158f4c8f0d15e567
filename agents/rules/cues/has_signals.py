"""Which turns are told of to those who keep what somebody is after. Pure."""

from agents.rules.cues.labels import Mark, marks_of
from schemas.memories import Memory

TELLING = Mark.GOAL | Mark.RESOLVED | Mark.DONE | Mark.ERROR | Mark.DECISION | Mark.CORRECTION
"""What changes an intention without being an item: above all that something is done or works now."""


def tells(turn: Memory) -> bool:
    """Whether a turn says something by itself or by its items; most turns don't, and cost no event."""
    return bool(turn.items) or turn.reading.aims is not None or bool(marks_of(turn) & TELLING)
