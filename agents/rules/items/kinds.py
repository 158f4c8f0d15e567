"""Derive the kind of an item from the labels of a sentence, and the kinds that each voice may say. Pure.

Guaranteed: only users and the system prompt set safety rules and only users correct; a tool reports errors and nothing
else, since its output may be anyone's text.
"""

import re
from collections.abc import Mapping
from enum import Enum
from typing import get_args

from agents.rules.text.tokenizer import fold
from schemas.state.memories import ItemKind, Memory

_REFERENCE = (
    r"(?:it|that|this|these|those|you|your|yours|them|how|what|the way|the idea|when you|him|her|something|anything|"
    r"several|about|either|so|das|es|dich|ihn|ca|cela|eso|lo)"
)
"""Words that need the turn before."""

_VAGUE: Mapping[ItemKind, re.Pattern[str]] = {
    "constraint": re.compile(
        r" must (?:really |also |all )?(?:have (?:a lot|been|so)|add|feel|be (?:so |really |very )?(?:\w+ing|awesome|"
        r"amazing|incredible|fantastic|perfect|happy|lovely|magical|special|hard|cool)) | never give up |"
        r"^ so (?:they|he|she|it) must "
    ),
    "preference": re.compile(
        r" (?:love|like|enjoy|adore|hate|prefer\w*|want|need|use|do|mag|liebe|aime|adore|rather have|rather)"
        rf"(?: to (?:see|hear|do|know|say|be|go|help))? (?:{_REFERENCE}|was|is|not|say|"
        r"the (?:thought|sound|last|first)) |^ (?:it's|that's|this is|it is|that is) | the moment |"
        r" was my favou?rite $| i thought | me (?:gusta|encanta) [,:] "
    ),
    "decision": re.compile(
        r" (?:decided|chose|chosen|agreed|agree|settled|settle|refused|accepted|dropped|go with|go for|say yes to|"
        rf"said yes to)(?: to| on| with| to do| for)? {_REFERENCE} | i'd decided | agreed (?:not to|on all) |"
        r" the wrong | dropped off | picked (?:up|this) | before | going for (?:a|another) |"
        r" taking the (?!job|offer|flat|role) | decided to $| almost | nearly |"
        rf" let's (?!go with |use |stick with |settle on |switch to )| let's use {_REFERENCE} |"
        r" noch nicht | not decided "
    ),
    "goal": re.compile(
        rf" (?:nicht|no|not|kein|never) | to (?:do|get|make|find|see|build|keep) {_REFERENCE} |"
        r" trying to (?:stay|be|do|keep|remain|find a|have|get) | like i'm | working on (?:one|it|this|that|myself) "
    ),
    "safety": re.compile(r" (?:not|isn't|aren't|no|nicht|pas|nobody) (?:es |is |soy |einmal )?(?:\w+ )?all?erg"),
    "error": re.compile(r" (?:not one|not a single|last (?:week|month|year)) "),
    "open_question": re.compile(
        r" (?:what for|what to (?:say|do)(?: \w+)*|why|how) $| (?:is how|when|that) (?:we|i|you) |"
        r" (?:gotta|when we|and|i|we) (?:figure|find) out | what i'd | (?:y|le|que|el|ella) me pregunto "
    ),
}
"""Vague phrases, by the kind that they seem to be."""

_OWN_LIKING = re.compile(
    r"(?:^| [,:!]| and| but| so| yeah| oh) (?:i|we) (?:(?:really|also|still|just|absolutely|always) )?"
    r"(?:love|like|enjoy|adore) | ich (?:mag|liebe) | me (?:gusta|encanta)n? | j'(?:aime|adore) |"
    r" (?:i'm|i am) (?:a (?:big |huge )?fan of|fond of|keen on|obsessed with) "
)
"""A liking of the speaker, in a main clause."""


def is_vague(kind: ItemKind, spaced: str) -> bool:
    """True if a sentence only seems to be of a kind, or says too little by itself."""
    pattern = _VAGUE.get(kind)
    return pattern is not None and pattern.search(spaced) is not None


def is_own_liking(spaced: str) -> bool:
    """True if the speaker states their own liking."""
    return _OWN_LIKING.search(spaced) is not None


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
