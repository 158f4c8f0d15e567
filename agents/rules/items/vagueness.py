"""Reject sentences that only seem to be of a kind: idioms, and references that need the turn before. Pure.

Guaranteed: time linear in the sentence.
"""

import re
from collections.abc import Mapping

from schemas.memories import ItemKind

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
