"""One item as it is found: what it says, where it stands, how sure it is. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from agents.rules.items.claims import claim_of
from agents.rules.items.kinds import Voice
from agents.rules.items.weights import confidence_of, stability_of
from agents.rules.text.chunking import Span
from agents.rules.text.dates import dates
from agents.rules.text.entities import entities
from agents.rules.text.sentences import sentence
from agents.rules.text.tokenizer import fold
from schemas.memories import ItemKind, Memory, MemoryType

TYPES: Mapping[ItemKind | None, MemoryType] = {
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

CLAIMING: frozenset[ItemKind | None] = frozenset({"fact", "decision", "correction"})
"""Kinds that say what is; two rules or two goals stand beside each other."""


class Found(NamedTuple):
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


class Place(NamedTuple):
    """Where items are looked for: the turn, the text of it or of one of its resources, and who speaks there."""

    memory: Memory
    text: str
    resource: str | None
    voice: Voice


def found_at(
    place: Place, span: Span, kind: ItemKind | None, text: str | None = None, confidence: float | None = None
) -> Found:
    """The item of a kind that a span is; `text` and `confidence` where not the rules say them."""
    said = place.text[span.start : span.end] if text is None else text
    spaced = sentence(said).spaced
    return Found(
        kind=kind,
        type=TYPES[kind],
        text=said,
        start=span.start,
        end=span.end,
        resource=place.resource,
        confidence=confidence_of(kind, place.voice, spaced) if confidence is None else confidence,
        stability=stability_of(kind, spaced),
        claim=_claim(place, kind, said),
        entities=entities(said),
        times=dates(said, place.memory.occurred_at),
    )


def _claim(place: Place, kind: ItemKind | None, said: str) -> str | None:
    """What it says one thing of. A document takes no one's word back: it may be old, or about something else."""
    if kind not in CLAIMING or place.voice is Voice.DOCUMENT:
        return None
    return claim_of(said, fold(place.memory.speaker or place.memory.role or "").strip())
