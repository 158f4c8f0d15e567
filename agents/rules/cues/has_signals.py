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
    """True if the turn has items or text signals; most turns have neither and cost no event."""
    return bool(turn.items) or has_text_signals(turn)


def has_text_signals(turn: Memory) -> bool:
    """True if the turn's text or a model's answer about it concerns an intention, even without an item."""
    return turn.reading.aims is not None or bool(label_memory(turn) & SIGNAL_LABELS)
