"""Confidence and stability of an item. Pure.

Enters: the kind, the voice and the words of an item. Leaves: two numbers in 0..1, each a product of a prior for the
kind and factors for the voice, an anaphora or a word such as `today`.
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
