"""Recompute the labels of a turn without its contradicted sentences. Pure.

A contradicted item points to the outdated sentence of its turn. Items superseded by consolidation are still true, and
do not count.
"""

from collections.abc import Iterable

from agents.rules.cues.labels import SentenceLabel, label_memory
from schemas.state.memories import Memory

CURRENT_STATE_LABELS = (
    SentenceLabel.SAFETY
    | SentenceLabel.CORRECTION
    | SentenceLabel.CONSTRAINT
    | SentenceLabel.ERROR
    | SentenceLabel.PREFERENCE
    | SentenceLabel.INSTRUCTION
)
CURRENT_STATE_LABELS |= SentenceLabel.DECISION | SentenceLabel.GOAL | SentenceLabel.PENDING
"""Labels that qualify a memory for sections on the current state."""


def is_contradicted(item: Memory) -> bool:
    """Return whether a later statement contradicts the item."""
    return item.superseded_by is not None and item.item is not None and item.item.valid_until is not None


def remaining_labels(turn: Memory, outdated: Iterable[Memory]) -> SentenceLabel:
    """Return the labels of the turn without the sentences behind these items."""
    spans = [
        (one.start, one.end)
        for item in outdated
        for one in item.evidence
        if one.memory_id == turn.memory_id and one.resource is None
    ]
    text, start = "", 0
    for begins, ends in sorted(spans):
        text += turn.text[start:begins]
        start = max(start, ends)
    return label_memory(turn.model_copy(update={"text": text + turn.text[start:]}))
