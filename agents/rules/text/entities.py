"""Names, identifiers, mentions and addresses in a text, by rule: pure, and the same for memories and questions."""

import re

from agents.rules.text.tokenizer import fold, is_stop_word

MAX_ENTITIES_PER_TEXT = 32
"""Entities kept of one text: a page of code would otherwise be nothing but identifiers."""

MAX_ENTITY_CHARS = 128
"""Characters of an entity that are kept; what is longer is data, not a name."""

_URL = re.compile(r"\b(?:https?://|www\.)[^\s<>\"')\]]+[^\s<>\"')\].,;:!?]")
_MENTION = re.compile(r"(?<![\w@])@\w[\w.-]*\w")
_IDENTIFIER = re.compile(
    r"\b(?:[A-Za-z]\w*+(?:\.\w++){0,6}\.(?:py|js|ts|go|rs|io|com|org|net|md|json|ya?ml|sql|sh|txt)"
    r"|\w+(?:_\w+)+|[a-z]+[A-Z]\w*|(?=[\w-]{0,20}\d)(?=[\w-]{0,20}[A-Za-z])\w+(?:-\w+)*)\b"
)
"""Parts and look-aheads are bounded: they begin again at every word, and `a-a-a-` would take half a minute."""

_NAME = re.compile(
    r"(?<!\w)[^\W\d_a-z]\w*(?:['\u2019-]\w+)*(?:[ ](?:(?:of|the|de|van|von|da|di|la)[ ])?[^\W\d_a-z]\w*)*"
)
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n\u2026\"\u201c(\[])\s*$")
_POSSESSIVE = re.compile(r"['\u2019]s$")


def extract_entities(text: str) -> tuple[str, ...]:
    """The entities of a text as written, each once, in the order of their kinds: addresses, mentions, ids, names."""
    found: dict[str, str] = {}
    for pattern in (_URL, _MENTION, _IDENTIFIER):
        for match in pattern.findall(text):
            found.setdefault(fold(match), match)
    for name in _names(text):
        found.setdefault(fold(name), name)
    return tuple(one for one in found.values() if len(one) <= MAX_ENTITY_CHARS)[:MAX_ENTITIES_PER_TEXT]


def _names(text: str) -> list[str]:
    """Runs of capitalised words, without the one that only opens a sentence."""
    names = []
    for match in _NAME.finditer(text):
        words = match.group().split(" ")
        opens = _SENTENCE_START.search(text, max(0, match.start() - 3), match.start()) or match.start() == 0
        if opens and (len(words) == 1 or is_stop_word(words[0])):
            words = words[1:]
        name = _POSSESSIVE.sub("", " ".join(words))
        if len(name) > 1 and name[:1].isupper() and not is_stop_word(name):
            names.append(name)
    return names
