"""An item as extracted: text, span, confidence, claim. Pure."""

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
"""The memory type of each kind; None is a segment of a document."""

CLAIM_KINDS: frozenset[ItemKind | None] = frozenset({"fact", "decision", "correction"})
"""Kinds with claims; two rules or two goals can hold together."""


class ExtractedItem(NamedTuple):
    """One item with its span of code points, `end` excluded, in the turn's text or in that of `resource`.

    `text` is the text of the span, or a model's paraphrase. `times` are the mentioned dates as ISO dates.
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
    """A text to search for items: that of a turn or of one of its resources, and its voice."""

    memory: Memory
    text: str
    resource: str | None
    voice: Voice


def build_extracted_item(
    source: SourceText, span: Span, kind: ItemKind | None, text: str | None = None, confidence: float | None = None
) -> ExtractedItem:
    """Build the item of a span; `text` and `confidence` default to those of the rules."""
    text = source.text[span.start : span.end] if text is None else text
    spaced = parse_sentence(text).spaced
    return ExtractedItem(
        kind=kind,
        type=MEMORY_TYPE_BY_KIND[kind],
        text=text,
        start=span.start,
        end=span.end,
        resource=source.resource,
        confidence=item_confidence(kind, source.voice, spaced) if confidence is None else confidence,
        stability=item_stability(kind, spaced),
        claim=_claim(source, kind, text),
        entities=extract_entities(text),
        times=find_dates(text, source.memory.occurred_at),
    )


def _claim(source: SourceText, kind: ItemKind | None, text: str) -> str | None:
    """Return the claim of an item; a document has none, since it may be old or about something else."""
    if kind not in CLAIM_KINDS or source.voice is Voice.DOCUMENT:
        return None
    return extract_claim(text, fold(source.memory.speaker or source.memory.role or "").strip())
