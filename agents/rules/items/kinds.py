"""Derive the kind of an item from the labels of a sentence, and the kinds that each voice may say. Pure.

Guaranteed: only users and the system prompt set safety rules and only users correct; a tool reports errors and nothing
else, since its output may be anyone's text.
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
"""Labels and kinds, ordered by the cost of missing one: the first in a sentence decides."""


class Voice(Enum):
    """The speaker of a text."""

    USER = "user"
    PERSON = "person"
    """A named speaker with the role of an assistant."""
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"
    DOCUMENT = "document"
    """A resource: its first person is not its sender."""


ALLOWED_KINDS: Mapping[Voice, frozenset[ItemKind]] = {
    Voice.USER: frozenset(get_args(ItemKind)),
    Voice.PERSON: frozenset({"fact", "preference", "decision", "procedure", "open_question", "error", "goal"}),
    Voice.ASSISTANT: frozenset({"fact", "decision", "procedure"}),
    Voice.SYSTEM: frozenset({"fact", "preference", "constraint", "safety", "procedure"}),
    Voice.TOOL: frozenset({"error"}),
    Voice.DOCUMENT: frozenset({"fact", "decision", "constraint", "procedure"}),
}
"""Allowed kinds by voice, consistent with the roles in `agents.rules.context.sticky`."""

RULE_KINDS: frozenset[ItemKind] = frozenset({"safety", "constraint", "correction", "preference"})
"""Kinds that set a rule."""

FIRST_PERSON_VOICES = frozenset({Voice.USER, Voice.PERSON})
"""Voices with a first person that means the speaker."""

_MACHINE_NAMES = frozenset({"assistant", "ai", "bot", "agent", "chatbot", "model", "system", "tool"})

_FROM_NOW_ON = re.compile(
    r" (?:from|as of) now on | ab (?:jetzt|sofort) | de ahora en adelante | dorenavant | desormais "
)
_ABOUT_ANSWERS = re.compile(
    r" (?:please|answer\w*|repl\w+|respond|write|call me|tell me|bitte|antworte\w*|responde|contesta|"
    r"reponds|repondez) "
)


def voice_of(memory: Memory) -> Voice | None:
    """Return the voice of a turn; None for a memory that is no turn."""
    if memory.origin != "said" or memory.role is None:
        return None
    if memory.role == "assistant" and memory.speaker and fold(memory.speaker).strip() not in _MACHINE_NAMES:
        return Voice.PERSON
    return Voice(memory.role)


def kind_of(labels: set[str], spaced: str) -> ItemKind | None:
    """Return the kind for the labels of a sentence; None if none applies or the sentence is vague."""
    for label, default in LABEL_KINDS:
        if label in labels:
            kind = _refine(label, default, spaced)
            if not is_vague(kind, spaced) and (label != "LIKING" or is_own_liking(spaced)):
                return kind
    return None


def _refine(label: str, kind: ItemKind, spaced: str) -> ItemKind:
    """Return `decision` for a rule from now on, unless it tells the assistant how to answer."""
    if label in ("PREFERENCE", "INSTRUCTION") and _FROM_NOW_ON.search(spaced) and not _ABOUT_ANSWERS.search(spaced):
        return "decision"
    return kind
