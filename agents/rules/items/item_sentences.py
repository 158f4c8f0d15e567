"""Whether a sentence by itself is an item, and of what kind. Pure.

Enters: a sentence as it was written. Leaves: a kind or None. Guaranteed: a question, a supposition and what is too
short or too long to be understood without its neighbours is none.
"""

import re

from agents.rules.cues.label_cues import ASSERTIVE, find_cue_labels
from agents.rules.items.facts import states_fact
from agents.rules.items.kinds import kind_of
from agents.rules.items.procedures import is_procedure
from agents.rules.text.languages import stop_words_of
from agents.rules.text.sentences import Sentence, parse_sentence, written_words
from schemas.memories import ItemKind

MAX_ITEM_CHARS = 500
"""Characters of a sentence: what is longer is a list or a log."""

MIN_ITEM_WORDS, MIN_CONTENT_WORDS = 3, 2
"""Words of an item, and those of them that are no stop words where it is no fact: `We decided that` says little."""

_DASH = re.compile("\u2014|[\u2013-](?=\\s)")
"""A dash parts clauses as a comma does."""


def classify_sentence(text: str, *, has_first_person: bool) -> ItemKind | None:
    """The kind of item that a sentence is; `has_first_person` may say `I` of himself."""
    if len(text) > MAX_ITEM_CHARS:
        return None
    text = _DASH.sub(", ", text)
    found = parse_sentence(text)
    if len(found.words) < MIN_ITEM_WORDS or found.asks:
        return None
    kind = _kind(found, text, somebody=has_first_person)
    return kind if kind == "fact" or (kind and _tells_enough(found.words)) else None


def _kind(found: Sentence, text: str, *, somebody: bool) -> ItemKind | None:
    names = find_cue_labels(found)
    if "SPECULATION" in names:
        names -= ASSERTIVE
    if is_procedure(found.spaced):
        return "procedure"
    if kind := kind_of(names, found.spaced):
        return kind
    if "SPECULATION" in names:
        return None
    written = written_words(text)
    if len(written) == len(found.words) and states_fact(found.words, written, found.spaced, has_first_person=somebody):
        return "fact"
    return None


def _tells_enough(words: list[str]) -> bool:
    stops = stop_words_of(words)
    return sum(word not in stops and word[0].isalnum() for word in words) >= MIN_CONTENT_WORDS
