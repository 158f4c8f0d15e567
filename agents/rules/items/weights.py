"""How sure an item is, and how long it is likely to hold. Pure.

Enters: the kind of an item, who said it, its words. Leaves: two numbers in 0..1. They are products of a number for the
kind and one for the voice or for a word that limits a statement to now, so that each can be read off.
"""

import re
from collections.abc import Mapping

from agents.rules.items.kinds import Voice
from schemas.memories import ItemKind

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
"""How often a sentence found by rule is of its kind, rounded down: of 110 judged by hand in the project's conversations
nine in ten were, fewer of the kinds that are also said in jest. A segment is what it is."""

VOICE_FACTOR: Mapping[Voice, float] = {
    Voice.USER: 1.0,
    Voice.PERSON: 1.0,
    Voice.SYSTEM: 1.0,
    Voice.TOOL: 0.9,
    Voice.ASSISTANT: 0.8,
    Voice.DOCUMENT: 0.8,
}
"""What a voice takes off: an assistant may be wrong about its user, and a document is seldom about one."""

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
"""An order, no measurement: an allergy lasts, an error is mended."""

TEMPORARY_FACTOR = 0.5
"""What a word that limits a statement to its day takes off."""

ANAPHORA_FACTOR = 0.7
"""What a pronoun at the beginning takes off: only the turn before tells of what it speaks."""

_LEANS = re.compile(
    r"^ (?:and |but |so )?(?:it|it's|she|he|they|that|that's|this|these|those|er|sie|es|das ist|elle|il) "
)
_FOR_NOW = re.compile(
    r" (?:today|tonight|currently|for now|right now|at the moment|this (?:week|morning|evening|afternoon|weekend)|"
    r"tomorrow|temporarily|for the time being|heute|gerade|derzeit|momentan|vorerst|morgen|hoy|ahora mismo|de momento|"
    r"esta semana|aujourd'hui|en ce moment|pour l'instant|cette semaine) "
)


def item_confidence(kind: ItemKind | None, voice: Voice, spaced: str) -> float:
    """How surely the evidence says so."""
    leaning = ANAPHORA_FACTOR if kind and _LEANS.search(spaced) else 1.0
    return round(KIND_CONFIDENCE[kind] * VOICE_FACTOR[voice] * leaning, 3)


def item_stability(kind: ItemKind | None, spaced: str) -> float:
    """How likely it still holds later."""
    return KIND_STABILITY[kind] * (TEMPORARY_FACTOR if _FOR_NOW.search(spaced) else 1.0)
