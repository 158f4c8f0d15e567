"""What still holds of a turn of which a part was taken back: its marks without the sentences that no longer hold. Pure.

An item that another has taken the place of names the sentence of its turn that is outdated. What consolidation put
together still holds: such an item is superseded, but nobody took it back.
"""

from collections.abc import Iterable

from agents.rules.cues.labels import SentenceLabel, label_memory
from schemas.memories import Memory

CURRENT_STATE_LABELS = (
    SentenceLabel.SAFETY
    | SentenceLabel.CORRECTION
    | SentenceLabel.CONSTRAINT
    | SentenceLabel.ERROR
    | SentenceLabel.PREFERENCE
    | SentenceLabel.INSTRUCTION
)
CURRENT_STATE_LABELS |= SentenceLabel.DECISION | SentenceLabel.GOAL | SentenceLabel.PENDING
"""Marks by which a memory is offered to a section that tells how things are now."""


def is_contradicted(item: Memory) -> bool:
    """Whether something that was said later says otherwise."""
    return item.superseded_by is not None and item.item is not None and item.item.valid_until is not None


def remaining_labels(turn: Memory, outdated: Iterable[Memory]) -> SentenceLabel:
    """The marks of the turn without the sentences behind these items."""
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
