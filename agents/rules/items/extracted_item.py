"""An item as extracted: text, span, confidence, claim. Pure."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from agents.rules.items.claims import extract_claim
from agents.rules.items.kinds import Voice
from agents.rules.text.chunking import Span
from agents.rules.text.dates import find_dates
from agents.rules.text.entities import extract_entities
from agents.rules.text.sentences import parse_sentence
from agents.rules.text.tokenizer import fold
from schemas.state.memories import ItemKind, Memory, MemoryType

KIND_CONFIDENCE: Mapping[ItemKind | None, float] = {
    "fact": 0.8,
    "preference": 0.8,
    "decision": 0.8,
    "constraint": 0.8,
    "correction": 0.7,
    "procedure": 0.8,
    "open_question": 0.8,
    "error": 0.7,
    "safety": 0.8,
    "goal": 0.7,
    None: 1.0,
}
"""Precision of the rules by kind, rounded down: of 110 items judged by hand in the project's conversations nine in ten
were right, fewer of the kinds that are also said in jest. None is a segment."""

VOICE_FACTOR: Mapping[Voice, float] = {
    Voice.USER: 1.0,
    Voice.PERSON: 1.0,
    Voice.SYSTEM: 1.0,
    Voice.TOOL: 0.9,
    Voice.ASSISTANT: 0.8,
    Voice.DOCUMENT: 0.8,
}
"""Confidence factor by voice: an assistant may be wrong about its user, and a document is seldom about the user."""

KIND_STABILITY: Mapping[ItemKind | None, float] = {
    "safety": 0.95,
    "fact": 0.8,
    "preference": 0.8,
    "constraint": 0.8,
    "correction": 0.8,
    "decision": 0.7,
    "procedure": 0.7,
    "goal": 0.5,
    "open_question": 0.3,
    "error": 0.2,
    None: 0.9,
}
"""A ranking, not measured: an allergy lasts, an error is fixed."""

TEMPORARY_FACTOR = 0.5
"""Stability factor of a word that limits a statement to now."""

ANAPHORA_FACTOR = 0.7
"""Confidence factor of a pronoun at the beginning, which refers to the turn before."""

_ANAPHORA = re.compile(
    r"^ (?:and |but |so )?(?:it|it's|she|he|they|that|that's|this|these|those|er|sie|es|das ist|elle|il) "
)
_TEMPORARY = re.compile(
    r" (?:today|tonight|currently|for now|right now|at the moment|this (?:week|morning|evening|afternoon|weekend)|"
    r"tomorrow|temporarily|for the time being|heute|gerade|derzeit|momentan|vorerst|morgen|hoy|ahora mismo|de momento|"
    r"esta semana|aujourd'hui|en ce moment|pour l'instant|cette semaine) "
)


def item_confidence(kind: ItemKind | None, voice: Voice, spaced: str) -> float:
    """Return how certain an item is, given its evidence."""
    anaphora = ANAPHORA_FACTOR if kind and _ANAPHORA.search(spaced) else 1.0
    return round(KIND_CONFIDENCE[kind] * VOICE_FACTOR[voice] * anaphora, 3)


def item_stability(kind: ItemKind | None, spaced: str) -> float:
    """Return how likely an item still holds later."""
    return KIND_STABILITY[kind] * (TEMPORARY_FACTOR if _TEMPORARY.search(spaced) else 1.0)


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
