"""Detect the intent of a turn, and map intents to interaction modes. Pure.

Enters: a text, or an intent from a caller or a model. Leaves: an intent of the table, or None if no rule is sure.
Guaranteed: only the beginning of a text is read, by patterns with bounded backtracking, so long texts cost no more.
"""

from collections.abc import Mapping

from agents.rules.cues.intent_patterns import COURTESY_TURN, INTENT_PATTERNS, STACK_TRACE
from agents.rules.text.tokenizer import fold
from schemas.state.interaction import InteractionMode

DIRECT_MODES: Mapping[str, InteractionMode] = {
    "task": "TASK",
    "debug": "DEBUGGING",
    "explore": "EXPLORATION",
    "learn": "LEARNING",
    "general": "GENERAL",
}
"""Intents that name a mode."""

SYNONYM_MODES: Mapping[str, InteractionMode] = {
    "implement": "TASK",
    "fix": "DEBUGGING",
    "error": "DEBUGGING",
    "investigate": "EXPLORATION",
    "explain": "LEARNING",
    "teach": "LEARNING",
}
"""Synonyms of these intents."""

FALLBACK_MODE: InteractionMode = "GENERAL"
"""The mode for no intent, `default` and every unknown intent."""

MAX_INTENT_CHARS = 400
"""Characters to match from the beginning: a turn says its intent first, or no rule is sure."""

MAX_TRACE_CHARS = 4_000
"""Characters to search for a stack trace: it may follow an introduction."""

LEADING_PUNCTUATION = "\u00bf\u00a1\"'*-#>( "
"""Characters to skip before the first word, such as the Spanish question mark."""

MAX_COURTESY_TURN_CHARS = 60
"""A longer turn is more than a greeting, thanks or an assent."""


def mode_of_intent(intent: str | None) -> InteractionMode:
    """Return the mode of an intent, ignoring case and surrounding spaces; `FALLBACK_MODE` for unknown intents."""
    word = (intent or "")[:MAX_COURTESY_TURN_CHARS].strip().lower()
    return DIRECT_MODES.get(word) or SYNONYM_MODES.get(word) or FALLBACK_MODE


def intent_of(text: str) -> str | None:
    """Return the intent of the beginning of a text, in several languages; None if no rule is sure."""
    if STACK_TRACE.search(text[:MAX_TRACE_CHARS]):
        return "error"
    head = " ".join(fold(text[:MAX_INTENT_CHARS]).split()).lstrip(LEADING_PUNCTUATION)
    if len(head) <= MAX_COURTESY_TURN_CHARS and COURTESY_TURN.fullmatch(head):
        return "general"
    return next((intent for intent, pattern in INTENT_PATTERNS if pattern.match(head)), None)
