"""Which turns are told of to those who keep what somebody is after. Pure."""

from agents.rules.cues.labels import SentenceLabel, label_memory
from schemas.memories import Memory

SIGNAL_LABELS = (
    SentenceLabel.GOAL
    | SentenceLabel.RESOLVED
    | SentenceLabel.DONE
    | SentenceLabel.ERROR
    | SentenceLabel.DECISION
    | SentenceLabel.CORRECTION
)
"""What changes an intention without being an item: above all that something is done or works now."""


def has_signals(turn: Memory) -> bool:
    """Whether a turn says something by itself or by its items; most turns don't, and cost no event."""
    return bool(turn.items) or turn.reading.aims is not None or bool(label_memory(turn) & SIGNAL_LABELS)
