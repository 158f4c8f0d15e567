"""What a turn wants, in a word, and which interaction mode that word stands for (seed 002, intent mapping). Pure.

Enters: a text, or an intent from a caller or a model. Leaves: an intent of the table, or None where no rule is sure.
Guaranteed: only the beginning of a text is read, by patterns that never look back far, so a long one costs no more.
"""

from collections.abc import Mapping

from agents.rules.cues.intent_patterns import GENERAL_WHOLE, PATTERNS, TRACE
from agents.rules.text.tokenizer import fold
from schemas.interaction import InteractionMode

DIRECT: Mapping[str, InteractionMode] = {
    "task": "TASK",
    "debug": "DEBUGGING",
    "explore": "EXPLORATION",
    "learn": "LEARNING",
    "general": "GENERAL",
}
"""Intents that are a mode (seed 002, direct mappings)."""

VARIATIONS: Mapping[str, InteractionMode] = {
    "implement": "TASK",
    "fix": "DEBUGGING",
    "error": "DEBUGGING",
    "investigate": "EXPLORATION",
    "explain": "LEARNING",
    "teach": "LEARNING",
}
"""Other words for them (seed 002, common variations)."""

FALLBACK: InteractionMode = "GENERAL"
"""What stands for no intent, `default` and every unknown one (seed 002, default fallback)."""

READ = 400
"""Characters of the beginning that the rules read: what a turn is for is said first, or no rule is sure of it."""

TRACED = 4_000
"""Characters in which a stack trace is looked for: it may come after an introduction."""

OPENING = "\u00bf\u00a1\"'*-#>( "
"""What may stand before the first word, as the Spanish question mark."""

WHOLE = 60
"""Characters of the longest turn that can be nothing but a greeting, a thank-you or an assent."""


def mode_of_intent(intent: str | None) -> InteractionMode:
    """The mode that the tables give to an intent, in any case and with spaces around; GENERAL for all others."""
    word = (intent or "")[:WHOLE].strip().lower()
    return DIRECT.get(word) or VARIATIONS.get(word) or FALLBACK


def intent_of(text: str) -> str | None:
    """The intent that a text begins with, in one of some languages; None where no rule is sure."""
    if TRACE.search(text[:TRACED]):
        return "error"
    head = " ".join(fold(text[:READ]).split()).lstrip(OPENING)
    if len(head) <= WHOLE and GENERAL_WHOLE.fullmatch(head):
        return "general"
    return next((intent for intent, pattern in PATTERNS if pattern.match(head)), None)
