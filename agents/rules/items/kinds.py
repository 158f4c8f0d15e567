"""What kind of item a sentence is by its marks, and who may say so. Pure.

Enters: the marks of a sentence, its words, and who speaks. Leaves: a kind or None. Guaranteed: nobody but a user, or
whoever runs the assistant, sets a rule; a tool reports errors and nothing else, since its output may be anybody's text.
"""

import re
from collections.abc import Mapping
from enum import Enum
from typing import get_args

from agents.rules.items.vagueness import is_own_liking, is_vague
from agents.rules.text.tokenizer import fold
from schemas.memories import ItemKind, Memory

LABEL_KINDS: tuple[tuple[str, ItemKind], ...] = (
    ("SAFETY", "safety"),
    ("CORRECTION", "correction"),
    ("CONSTRAINT", "constraint"),
    ("OPEN_QUESTION", "open_question"),
    ("DECISION", "decision"),
    ("ERROR", "error"),
    ("GOAL", "goal"),
    ("PREFERENCE", "preference"),
    ("INSTRUCTION", "preference"),
    ("LIKING", "preference"),
)
"""Marks and kinds; of several in one sentence the first, which is the one that is missed the most."""


class Voice(Enum):
    """Who speaks."""

    USER = "user"
    PERSON = "person"
    """Somebody with a name whose turns have the role of an assistant."""
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"
    DOCUMENT = "document"
    """A resource: its first person is not the one who sent it."""


ALLOWED_KINDS: Mapping[Voice, frozenset[ItemKind]] = {
    Voice.USER: frozenset(get_args(ItemKind)),
    Voice.PERSON: frozenset({"fact", "preference", "decision", "procedure", "open_question", "error", "goal"}),
    Voice.ASSISTANT: frozenset({"fact", "decision", "procedure"}),
    Voice.SYSTEM: frozenset({"fact", "preference", "constraint", "safety", "procedure"}),
    Voice.TOOL: frozenset({"error"}),
    Voice.DOCUMENT: frozenset({"fact", "decision", "constraint", "procedure"}),
}
"""The kinds that each may say: `agents.rules.context.sticky` says who sets rules and who reports errors."""

RULE_KINDS: frozenset[ItemKind] = frozenset({"safety", "constraint", "correction", "preference"})
"""Kinds by which somebody says what is to be."""

FIRST_PERSON_VOICES = frozenset({Voice.USER, Voice.PERSON})
"""Voices whose first person is somebody."""

_MACHINES = frozenset({"assistant", "ai", "bot", "agent", "chatbot", "model", "system", "tool"})

_HENCEFORTH = re.compile(
    r" (?:from|as of) now on | ab (?:jetzt|sofort) | de ahora en adelante | dorenavant | desormais "
)
_ADDRESSED = re.compile(
    r" (?:please|answer\w*|repl\w+|respond|write|call me|tell me|bitte|antworte\w*|responde|contesta|"
    r"reponds|repondez) "
)


def voice_of(memory: Memory) -> Voice | None:
    """Who speaks in a turn; None for what is no turn."""
    if memory.origin != "said" or memory.role is None:
        return None
    if memory.role == "assistant" and memory.speaker and fold(memory.speaker).strip() not in _MACHINES:
        return Voice.PERSON
    return Voice(memory.role)


def kind_of(names: set[str], spaced: str) -> ItemKind | None:
    """The kind that the marks of a sentence mean."""
    for name, kind in LABEL_KINDS:
        if name in names:
            meant = _meant(name, kind, spaced)
            if not is_vague(meant, spaced) and (name != "LIKING" or is_own_liking(spaced)):
                return meant
    return None


def _meant(name: str, kind: ItemKind, spaced: str) -> ItemKind:
    """What holds from now on is a decision, unless it tells the assistant how to answer."""
    if name in ("PREFERENCE", "INSTRUCTION") and _HENCEFORTH.search(spaced) and not _ADDRESSED.search(spaced):
        return "decision"
    return kind
