"""One item as it is found: what it says, where it stands, how sure it is. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from agents.rules.items.claims import extract_claim
from agents.rules.items.kinds import Voice
from agents.rules.items.weights import item_confidence, item_stability
from agents.rules.text.chunking import Span
from agents.rules.text.dates import find_dates
from agents.rules.text.entities import extract_entities
from agents.rules.text.sentences import parse_sentence
from agents.rules.text.tokenizer import fold
from schemas.memories import ItemKind, Memory, MemoryType

MEMORY_TYPE_BY_KIND: Mapping[ItemKind | None, MemoryType] = {
    "fact": "semantic",
    "preference": "semantic",
    "decision": "semantic",
    "constraint": "semantic",
    "correction": "semantic",
    "safety": "semantic",
    "procedure": "procedural",
    "open_question": "state_object",
    "error": "state_object",
    "goal": "state_object",
    None: "document",
}
"""The memory type of each kind: what is known, what is done, what stands so for now, what a document says."""

CLAIM_KINDS: frozenset[ItemKind | None] = frozenset({"fact", "decision", "correction"})
"""Kinds that say what is; two rules or two goals stand beside each other."""


class ExtractedItem(NamedTuple):
    """One item. It stands from `start` to before `end`, in code points, in the turn's text or in that of a resource.

    `text` is what stands there, or what a model makes of it. `times` are dates that it speaks of, as ISO dates.
    """

    kind: ItemKind | None
    type: MemoryType
    text: str
    start: int
    end: int
    resource: str | None
    confidence: float
    stability: float
    claim: str | None
    entities: tuple[str, ...]
    times: tuple[str, ...]


class SourceText(NamedTuple):
    """Where items are looked for: the turn, the text of it or of one of its resources, and who speaks there."""

    memory: Memory
    text: str
    resource: str | None
    voice: Voice


def found_item_at(
    place: SourceText, span: Span, kind: ItemKind | None, text: str | None = None, confidence: float | None = None
) -> ExtractedItem:
    """The item of a kind that a span is; `text` and `confidence` where not the rules say them."""
    said = place.text[span.start : span.end] if text is None else text
    spaced = parse_sentence(said).spaced
    return ExtractedItem(
        kind=kind,
        type=MEMORY_TYPE_BY_KIND[kind],
        text=said,
        start=span.start,
        end=span.end,
        resource=place.resource,
        confidence=item_confidence(kind, place.voice, spaced) if confidence is None else confidence,
        stability=item_stability(kind, spaced),
        claim=_claim(place, kind, said),
        entities=extract_entities(said),
        times=find_dates(said, place.memory.occurred_at),
    )


def _claim(place: SourceText, kind: ItemKind | None, said: str) -> str | None:
    """What it says one thing of. A document takes no one's word back: it may be old, or about something else."""
    if kind not in CLAIM_KINDS or place.voice is Voice.DOCUMENT:
        return None
    return extract_claim(said, fold(place.memory.speaker or place.memory.role or "").strip())
