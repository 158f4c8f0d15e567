"""What kind of item a sentence is by its marks, and who may say so. Pure.

Enters: the marks of a sentence, its words, and who speaks. Leaves: a kind or None. Guaranteed: nobody but a user, or
whoever runs the assistant, sets a rule; a tool reports errors and nothing else, since its output may be anybody's text.
"""

import re
from collections.abc import Mapping
from enum import Enum
from typing import get_args

from agents.rules.words import fold
from schemas.memories import ItemKind, Memory

KINDS: tuple[tuple[str, ItemKind], ...] = (
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


ALLOWED: Mapping[Voice, frozenset[ItemKind]] = {
    Voice.USER: frozenset(get_args(ItemKind)),
    Voice.PERSON: frozenset({"fact", "preference", "decision", "procedure", "open_question", "error", "goal"}),
    Voice.ASSISTANT: frozenset({"fact", "decision", "procedure"}),
    Voice.SYSTEM: frozenset({"fact", "preference", "constraint", "safety", "procedure"}),
    Voice.TOOL: frozenset({"error"}),
    Voice.DOCUMENT: frozenset({"fact", "decision", "constraint", "procedure"}),
}
"""The kinds that each may say: `agents.rules.sticky` says who sets rules and who reports errors."""

RULES: frozenset[ItemKind] = frozenset({"safety", "constraint", "correction", "preference"})
"""Kinds by which somebody says what is to be."""

PEOPLE = frozenset({Voice.USER, Voice.PERSON})
"""Voices whose first person is somebody."""

_MACHINES = frozenset({"assistant", "ai", "bot", "agent", "chatbot", "model", "system", "tool"})

_THAT = (
    r"(?:it|that|this|these|those|you|your|yours|them|how|what|the way|the idea|when you|him|her|something|anything|"
    r"several|about|either|so|das|es|dich|ihn|ca|cela|eso|lo)"
)
"""What only the turn before tells."""

_VAGUE: Mapping[ItemKind, re.Pattern[str]] = {
    "constraint": re.compile(
        r" must (?:really |also |all )?(?:have (?:a lot|been|so)|add|feel|be (?:so |really |very )?(?:\w+ing|awesome|"
        r"amazing|incredible|fantastic|perfect|happy|lovely|magical|special|hard|cool)) | never give up |^ so (?:they|he|she|it) must "
    ),
    "preference": re.compile(
        r" (?:love|like|enjoy|adore|hate|prefer\w*|want|need|use|do|mag|liebe|aime|adore|rather have|rather)"
        rf"(?: to (?:see|hear|do|know|say|be|go|help))? (?:{_THAT}|was|is|not|say|the (?:thought|sound|last|first)) |"
        r"^ (?:it's|that's|this is|it is|that is) | the moment | was my favou?rite $| i thought | me (?:gusta|encanta) [,:] "
    ),
    "decision": re.compile(
        rf" (?:decided|chose|chosen|agreed|agree|settled|settle|refused|accepted|dropped|go with|go for|say yes to|"
        rf"said yes to)(?: to| on| with| to do| for)? {_THAT} | i'd decided | agreed (?:not to|on all) | the wrong | dropped off | picked (?:up|this) |"
        rf" before | going for (?:a|another) | taking the (?!job|offer|flat|role) | decided to $| almost | nearly |"
        rf" let's (?!go with |use |stick with |settle on |switch to )| let's use {_THAT} | noch nicht | not decided "
    ),
    "goal": re.compile(
        rf" (?:nicht|no|not|kein|never) | to (?:do|get|make|find|see|build|keep) {_THAT} |"
        r" trying to (?:stay|be|do|keep|remain|find a|have|get) | like i'm | working on (?:one|it|this|that|myself) "
    ),
    "safety": re.compile(r" (?:not|isn't|aren't|no|nicht|pas|nobody) (?:es |is |soy |einmal )?(?:\w+ )?all?erg"),
    "error": re.compile(r" (?:not one|not a single|last (?:week|month|year)) "),
    "open_question": re.compile(
        r" (?:what for|what to (?:say|do)(?: \w+)*|why|how) $| (?:is how|when|that) (?:we|i|you) |"
        r" (?:gotta|when we|and|i|we) (?:figure|find) out | what i'd | (?:y|le|que|el|ella) me pregunto "
    ),
}
"""What keeps a sentence from telling, by itself, what is liked, decided, wanted or not known."""

_OWN_LIKING = re.compile(
    r"(?:^| [,:!]| and| but| so| yeah| oh) (?:i|we) (?:(?:really|also|still|just|absolutely|always) )?"
    r"(?:love|like|enjoy|adore) | ich (?:mag|liebe) | me (?:gusta|encanta)n? | j'(?:aime|adore) |"
    r" (?:i'm|i am) (?:a (?:big |huge )?fan of|fond of|keen on|obsessed with) "
)
"""A liking of the speaker's own, in a main clause."""

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
    for name, kind in KINDS:
        if name in names:
            meant = _meant(name, kind, spaced)
            vague = _VAGUE.get(meant)
            if not (vague and vague.search(spaced)) and (name != "LIKING" or _OWN_LIKING.search(spaced)):
                return meant
    return None


def _meant(name: str, kind: ItemKind, spaced: str) -> ItemKind:
    """What holds from now on is a decision, unless it tells the assistant how to answer."""
    if name in ("PREFERENCE", "INSTRUCTION") and _HENCEFORTH.search(spaced) and not _ADDRESSED.search(spaced):
        return "decision"
    return kind
