"""Derive the kind of an item from the labels of a sentence, and the kinds that each voice may say. Pure.

Only users and the system prompt set safety rules, and only users correct. A tool only reports errors, since its output
may be anyone's text. A step of a procedure begins with an imperative verb.
"""

import re
from collections.abc import Mapping
from enum import Enum
from typing import get_args

from modestream_client.vocabulary import ItemKind

from agents.rules.text.passages import MAX_CHUNK_CHARS, Span, statement_lines
from agents.rules.text.tokenizer import fold
from schemas.state.memories import Memory

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
"""Sentences that only seem to be of a kind, or say too little by themselves."""

_OWN_LIKING = re.compile(
    r"(?:^| [,:!]| and| but| so| yeah| oh) (?:i|we) (?:(?:really|also|still|just|absolutely|always) )?"
    r"(?:love|like|enjoy|adore) | ich (?:mag|liebe) | me (?:gusta|encanta)n? | j'(?:aime|adore) |"
    r" (?:i'm|i am) (?:a (?:big |huge )?fan of|fond of|keen on|obsessed with) "
)
"""A liking of the speaker, in a main clause."""


LABEL_KINDS: tuple[tuple[str, ItemKind], ...] = (
    ("SAFETY", "safety"),
    ("CORRECTION", "correction"),
    ("CONSTRAINT", "constraint"),
    ("OPEN_QUESTION", "open_question"),
    ("DECISION", "decision"),
    ("ERROR", "error"),
    ("GOAL", "goal"),
    ("PREFERENCE", "preference"),
    ("STANDING_PREFERENCE", "preference"),
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

MAX_REPORT_CHARS = 1000
"""Characters of an assistant's longest report. A longer reply explains: it decides nothing for its reader, and what it
states are its examples. In ten chats of BEAM, with replies of 3,800 characters, the rules found 42 decisions of an
assistant; three of them repeat what the user had said."""

RULE_KINDS: frozenset[ItemKind] = frozenset({"safety", "constraint", "correction", "preference"})

FIRST_PERSON_VOICES = frozenset({Voice.USER, Voice.PERSON})
"""Voices with a first person that means the speaker."""

CLAIM_KINDS: frozenset[ItemKind | None] = frozenset({"fact", "decision", "correction", "preference"})
"""Kinds with claims; two rules or two goals can be valid together. A preference has one if it is a favourite thing."""

REPLACING_VOICES = frozenset({Voice.USER, Voice.PERSON, Voice.SYSTEM})
"""Voices whose statements supersede earlier ones, by their claim or where a language model says so."""

_MACHINE_NAMES = frozenset({"assistant", "ai", "bot", "agent", "chatbot", "model", "system", "tool"})


def voice_of(memory: Memory) -> Voice | None:
    """Return the voice of a turn; None for other memories."""
    if memory.origin != "said" or memory.role is None:
        return None
    if memory.role == "assistant" and memory.speaker and fold(memory.speaker).strip() not in _MACHINE_NAMES:
        return Voice.PERSON
    return Voice(memory.role)


def kind_of(labels: set[str], spaced: str) -> ItemKind | None:
    """Return the kind for the labels of a sentence; None if none applies or the sentence is vague."""
    for label, kind in LABEL_KINDS:
        if label in labels:
            vague = _VAGUE.get(kind)
            if not (vague and vague.search(spaced)) and (label != "LIKING" or _OWN_LIKING.search(spaced)):
                return kind
    return None


_VERB = (
    r"(?:run|rerun|use|call|type|press|click|tap|open|close|set|unset|add|install|uninstall|execute|go|start|stop|"
    r"restart|copy|paste|delete|remove|push|pull|build|rebuild|create|edit|enter|select|choose|pick|log|turn|hold|put|"
    r"mix|boil|heat|preheat|soak|drain|write|send|ask|export|import|make|take|check|rename|move|merge|commit|deploy|"
    r"bump|tag|drop|apply|update|upgrade|download|upload|unplug|plug|wait|fill|pour|stir|bake|cut|fold|rinse|shake|"
    r"clone|checkout|switch|enable|disable|read|test|verify|save|sign|print|book|fetch|clear|replace|pass|wrap|let)"
)

_VERB_ES = r"(?:ejecuta|ejecute|usa|use|pulsa|pulse|abre|abra|escribe|haz|haga|ve|instala|llama|corre|lanza|pon|anade)"
_VERB_FR = (
    r"(?:lance|lancez|execute|executez|utilise|utilisez|appuie|appuyez|ouvre|ouvrez|tape|tapez|fais|faites|installe|"
    r"installez|clique|cliquez|appelle|appelez|mets|mettez)"
)
_VERB_DE = (
    r"(?:fuhr|fuhre|fuhren|nimm|nehmen|drucke|drucken|offne|offnen|starte|starten|ruf|rufe|rufen|gib|geben|"
    r"installiere|installieren|klicke|klicken|benutze|benutzen|verwende|verwenden|tippe|tippen|muss|musst|musst|mussen)"
)

_SAYS_HOW = re.compile(
    rf"^ (?:and |then |so |also ){{0,2}}(?:in order )?to (?!be |say |put |sum |begin |start |clarify |summarize |me )"
    rf"(?:[^ ,:?!]+ ){{1,8}}[,:] (?:you (?:have to |need to |must |can |should |just |only )*)?"
    rf"(?:first |just |simply |always |please |then ){{0,2}}{_VERB} [^ ]"
    rf"|^ (?:run|execute|type) (?:[^ ,:?!]+ ){{1,6}}to (?:[^ ,:?!]+ ){{1,8}}$"
    rf"|^ first ,? ?{_VERB} (?:[^ ]+ ){{1,40}}?then ,? ?{_VERB} "
    rf"|^ um (?:[^ ,]+ ){{0,6}}zu [^ ,]+ , (?:einfach |zuerst ){{0,2}}{_VERB_DE} "
    rf"|^ para [^ ,]+[aei]r(?:lo|la|se)? (?:[^ ,]+ ){{0,6}}, {_VERB_ES} "
    rf"|^ pour [^ ,]+(?:er|ir|re) (?:[^ ,]+ ){{0,6}}, {_VERB_FR} "
)
_STEP = re.compile(rf"\s*(?P<number>\d{{1,2}})[.)]\s+[`*]*{_VERB}\b[^?]*$", re.IGNORECASE)
MIN_STEPS = 2


def is_procedure(spaced: str) -> bool:
    """True if a sentence, as `Sentence.spaced`, says how something is done."""
    return _SAYS_HOW.search(spaced) is not None


def find_step_lists(text: str) -> list[Span]:
    """Return the numbered lists of steps with their introductory line, without lists longer than a chunk."""
    lines = list(statement_lines(text))
    lists, steps = [], 0
    for index, line in enumerate(lines):
        match = _STEP.match(text[line.start : line.end])
        number = int(match["number"]) if match else 0
        if number == steps + 1:
            steps = number
            continue
        lists += _list_span(text, lines, index, steps)
        steps = 1 if number == 1 else 0
    return lists + _list_span(text, lines, len(lines), steps)


def _list_span(text: str, lines: list[Span], end: int, steps: int) -> list[Span]:
    """Return the span of the list of `steps` lines before line `end`; empty if it is too short or too long."""
    if steps < MIN_STEPS:
        return []
    first = end - steps
    if first > 0 and text[lines[first - 1].end - 1] == ":":
        first -= 1
    span = Span(lines[first].start, lines[end - 1].end)
    return [span] if span.end - span.start <= MAX_CHUNK_CHARS else []
