"""An item as extracted: text, span, confidence, claim. Pure."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from modestream_client.vocabulary import ItemKind, MemoryType

from agents.rules.items.claim_reading import extract_claim
from agents.rules.items.kinds import CLAIM_KINDS, REPLACING_VOICES, Voice
from agents.rules.text.dates import find_dates
from agents.rules.text.sentences import Span, parse_sentence
from agents.rules.text.tokenizer import extract_entities, fold
from schemas.state.memories import Memory


class KindRating(NamedTuple):
    """The figures of an item's kind, and its memory type.

    `confidence`: precision of the rules, rounded down: of 110 items judged by hand in the project's conversations nine
    in ten were right, fewer of the kinds that are also said in jest. `stability`: a ranking, not measured: an allergy
    lasts, an error is fixed.
    """

    confidence: float
    stability: float
    type: MemoryType


KIND_RATINGS: Mapping[ItemKind | None, KindRating] = {
    "fact": KindRating(0.8, 0.8, "semantic"),
    "preference": KindRating(0.8, 0.8, "semantic"),
    "decision": KindRating(0.8, 0.7, "semantic"),
    "constraint": KindRating(0.8, 0.8, "semantic"),
    "correction": KindRating(0.7, 0.8, "semantic"),
    "safety": KindRating(0.8, 0.95, "semantic"),
    "procedure": KindRating(0.8, 0.7, "procedural"),
    "open_question": KindRating(0.8, 0.3, "state_object"),
    "error": KindRating(0.7, 0.2, "state_object"),
    "goal": KindRating(0.7, 0.5, "state_object"),
    None: KindRating(1.0, 0.9, "document"),
}
"""By kind; None is a segment of a document."""

VOICE_FACTOR: Mapping[Voice, float] = {
    Voice.USER: 1.0,
    Voice.PERSON: 1.0,
    Voice.SYSTEM: 1.0,
    Voice.TOOL: 0.9,
    Voice.ASSISTANT: 0.8,
    Voice.DOCUMENT: 0.8,
}
"""Confidence factor by voice: an assistant may be wrong about its user, and a document is seldom about the user."""

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
    return round(KIND_RATINGS[kind].confidence * VOICE_FACTOR[voice] * anaphora, 3)


def item_stability(kind: ItemKind | None, spaced: str) -> float:
    """Return how likely an item still holds later."""
    return KIND_RATINGS[kind].stability * (TEMPORARY_FACTOR if _TEMPORARY.search(spaced) else 1.0)


class ExtractedItem(NamedTuple):
    """One item with its span of code points, `end` excluded, in the turn's text or in that of `resource`.

    `text` is the text of the span, or a model's paraphrase. `times` are the mentioned dates as ISO dates. `replaces`
    names earlier items that are outdated, as found by a language model. `may_supersede` tells whether its voice may
    supersede earlier items. `mode` is its register, as found by a language model, if it differs from its turn's; such
    an item, and others of the same sentence, stand `instead_of` the rules' item.
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
    replaces: tuple[str, ...] = ()
    may_supersede: bool = True
    mode: str | None = None
    instead_of: str | None = None


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
    spaced, claim = parse_sentence(text).spaced, None
    # A document makes no claim, since it may be old or about something else.
    if kind in CLAIM_KINDS and source.voice is not Voice.DOCUMENT:
        claim = extract_claim(text, fold(source.memory.speaker or source.memory.role or "").strip())
    return ExtractedItem(
        kind=kind,
        type=KIND_RATINGS[kind].type,
        text=text,
        start=span.start,
        end=span.end,
        resource=source.resource,
        confidence=item_confidence(kind, source.voice, spaced) if confidence is None else confidence,
        stability=item_stability(kind, spaced),
        claim=claim,
        entities=extract_entities(text),
        times=find_dates(text, source.memory.occurred_at),
        may_supersede=source.voice in REPLACING_VOICES,
    )
