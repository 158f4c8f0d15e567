"""Select the turns that may change an intention. Pure."""

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
"""Labels that may change an intention without an item: above all that something is done or works now."""


def has_signals(turn: Memory) -> bool:
    """True if a turn has items, aims or signal labels; most turns don't, and cost no event."""
    return bool(turn.items) or turn.reading.aims is not None or bool(label_memory(turn) & SIGNAL_LABELS)
