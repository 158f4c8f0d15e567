"""What a turn wants, in a word, and which interaction mode that word stands for (seed 002, intent mapping). Pure.

Enters: a text, or an intent from a caller or a model. Leaves: an intent of the table, or None where no rule is sure.
Guaranteed: only the beginning of a text is read, by patterns that never look back far, so a long one costs no more.
"""

from collections.abc import Mapping

from agents.rules.cues.intent_patterns import COURTESY_TURN, INTENT_PATTERNS, STACK_TRACE
from agents.rules.text.tokenizer import fold
from schemas.interaction import InteractionMode

DIRECT_MODES: Mapping[str, InteractionMode] = {
    "task": "TASK",
    "debug": "DEBUGGING",
    "explore": "EXPLORATION",
    "learn": "LEARNING",
    "general": "GENERAL",
}
"""Intents that are a mode (seed 002, direct mappings)."""

SYNONYM_MODES: Mapping[str, InteractionMode] = {
    "implement": "TASK",
    "fix": "DEBUGGING",
    "error": "DEBUGGING",
    "investigate": "EXPLORATION",
    "explain": "LEARNING",
    "teach": "LEARNING",
}
"""Other words for them (seed 002, common variations)."""

FALLBACK_MODE: InteractionMode = "GENERAL"
"""What stands for no intent, `default` and every unknown one (seed 002, default fallback)."""

MAX_INTENT_CHARS = 400
"""Characters of the beginning that the rules read: what a turn is for is said first, or no rule is sure of it."""

MAX_TRACE_CHARS = 4_000
"""Characters in which a stack trace is looked for: it may come after an introduction."""

LEADING_PUNCTUATION = "\u00bf\u00a1\"'*-#>( "
"""What may stand before the first word, as the Spanish question mark."""

MAX_COURTESY_TURN_CHARS = 60
"""Characters of the longest turn that can be nothing but a greeting, a thank-you or an assent."""


def mode_of_intent(intent: str | None) -> InteractionMode:
    """The mode that the tables give to an intent, in any case and with spaces around; GENERAL for all others."""
    word = (intent or "")[:MAX_COURTESY_TURN_CHARS].strip().lower()
    return DIRECT_MODES.get(word) or SYNONYM_MODES.get(word) or FALLBACK_MODE


def intent_of(text: str) -> str | None:
    """The intent that a text begins with, in one of some languages; None where no rule is sure."""
    if STACK_TRACE.search(text[:MAX_TRACE_CHARS]):
        return "error"
    head = " ".join(fold(text[:MAX_INTENT_CHARS]).split()).lstrip(LEADING_PUNCTUATION)
    if len(head) <= MAX_COURTESY_TURN_CHARS and COURTESY_TURN.fullmatch(head):
        return "general"
    return next((intent for intent, pattern in INTENT_PATTERNS if pattern.match(head)), None)
