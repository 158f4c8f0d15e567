"""Words of the contract in plain words: what chose a mode, what kind a memory is, how its vector is. Pure."""

from collections.abc import Mapping
from typing import Any

from gateway.pages.formats import percent

TYPES = {
    "": "Turns and summaries",
    "items": "Everything extracted",
    "episodic": "episodic: turns as they were said",
    "semantic": "semantic: facts, preferences, decisions",
    "procedural": "procedural: how things are done",
    "document": "document: parts of resources",
    "state_object": "state_object: goals, errors, questions",
    "working": "working: in a conversation's window",
}
"""Choices of the filter by type."""

ROLES = ("user", "assistant", "system", "tool")

EMBEDDING_STATUSES = {
    "ready": "ready: found by meaning",
    "pending": "pending: by words until it is embedded",
    "stale": "stale: of an earlier text or embedder",
    "failed": "failed: by words alone",
    "not_applicable": "not applicable: no search finds it",
}

MODE_SOURCES = {
    "caller": "the caller said so",
    "model": "the model decided",
    "project_default": "the project's default",
    "user_default": "the user's default",
    "fallback": "no client, model or default named one",
}

DECAY_TIMES = {
    "fast": "loses weight within days",
    "medium": "loses weight within weeks",
    "slow": "loses weight within months",
    "none": "keeps its weight",
}

INTERACTION_MODES = {
    "TASK": "something is to be done",
    "EXPLORATION": "options are weighed",
    "DEBUGGING": "something is broken",
    "LEARNING": "something is to be understood",
    "GENERAL": "none of these",
}
"""What a turn is for; it decides the budgets of a context."""


SURE_FROM = 0.7
"""Confidence from which another mode than GENERAL is taken (docs/contract.md)."""


def kind_of(memory: Mapping[str, Any]) -> str:
    """Return what a record is: a turn, what was extracted from turns, or a summary."""
    origin = memory.get("origin", "said")
    if origin == "distilled":
        return "Summary"
    if origin == "extracted":
        return f"Extracted {str(memory.get('kind') or memory['type']).replace('_', ' ')}"
    return "Turn"


def speaker_of(memory: Mapping[str, Any]) -> str:
    """Return the name of what said it, else its role; a summary has neither."""
    return str(memory.get("speaker") or memory.get("role") or "summary")


def interaction_reason(memory: Mapping[str, Any]) -> str:
    """Return why a turn has its interaction mode."""
    if memory.get("interaction_mode") is None:
        return "not decided yet: the first context that shows it decides"
    if memory.get("interaction_corrected"):
        return "corrected by hand"
    confidence = memory.get("interaction_confidence") or 0.0
    if confidence < SURE_FROM:
        return f"no other is sure enough: {percent(confidence)}"
    reader = f"the model {memory['model']}" if memory.get("understanding") == "model" else "rules and the classifier"
    return f"{percent(confidence)} sure, by {reader}"
