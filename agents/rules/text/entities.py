"""Extract names, identifiers, mentions and addresses by rule, the same for memories and questions. Pure."""

import re

from agents.rules.text.tokenizer import fold, is_stop_word

MAX_ENTITIES_PER_TEXT = 32
"""Maximum entities per text: a page of code would be nothing but identifiers."""

MAX_ENTITY_CHARS = 128
"""Longer entities are dropped: they are data, not names."""

_URL = re.compile(r"\b(?:https?://|www\.)[^\s<>\"')\]]+[^\s<>\"')\].,;:!?]")
_MENTION = re.compile(r"(?<![\w@])@\w[\w.-]*\w")
_IDENTIFIER = re.compile(
    r"\b(?:[A-Za-z]\w*+(?:\.\w++){0,6}\.(?:py|js|ts|go|rs|io|com|org|net|md|json|ya?ml|sql|sh|txt)"
    r"|\w+(?:_\w+)+|[a-z]+[A-Z]\w*|(?=[\w-]{0,20}\d)(?=[\w-]{0,20}[A-Za-z])\w+(?:-\w+)*)\b"
)
"""Parts and look-aheads are bounded: they restart at every word, and `a-a-a-` would take half a minute."""

_NAME = re.compile(
    r"(?<!\w)[^\W\d_a-z]\w*(?:['\u2019-]\w+)*(?:[ ](?:(?:of|the|de|van|von|da|di|la)[ ])?[^\W\d_a-z]\w*)*"
)
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n\u2026\"\u201c(\[])\s*$")
_POSSESSIVE = re.compile(r"['\u2019]s$")


def extract_entities(text: str) -> tuple[str, ...]:
    """Return the entities as written, each once, ordered by kind: addresses, mentions, identifiers, names."""
    entities: dict[str, str] = {}
    for pattern in (_URL, _MENTION, _IDENTIFIER):
        for match in pattern.findall(text):
            entities.setdefault(fold(match), match)
    for name in _names(text):
        entities.setdefault(fold(name), name)
    return tuple(one for one in entities.values() if len(one) <= MAX_ENTITY_CHARS)[:MAX_ENTITIES_PER_TEXT]


def _names(text: str) -> list[str]:
    """Return runs of capitalised words, without the word that merely opens a sentence."""
    names = []
    for match in _NAME.finditer(text):
        words = match.group().split(" ")
        is_opening = _SENTENCE_START.search(text, max(0, match.start() - 3), match.start()) or match.start() == 0
        if is_opening and (len(words) == 1 or is_stop_word(words[0])):
            words = words[1:]
        name = _POSSESSIVE.sub("", " ".join(words))
        if len(name) > 1 and name[:1].isupper() and not is_stop_word(name):
            names.append(name)
    return names
