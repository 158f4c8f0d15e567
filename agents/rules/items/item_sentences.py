"""Classify a sentence as an item of a kind. Pure.

Enters: a sentence as written. Leaves: a kind or None. Guaranteed: questions, suppositions, and sentences too short or
too long to be understood alone are no items.
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
"""A longer sentence is a list or a log."""

MIN_ITEM_WORDS, MIN_CONTENT_WORDS = 3, 2
"""Words of an item, and its words without stop words unless it is a fact: `We decided that` says little."""

_DASH = re.compile("\u2014|[\u2013-](?=\\s)")
"""A dash separates clauses like a comma."""


def classify_sentence(text: str, *, has_first_person: bool) -> ItemKind | None:
    """Return the kind of item of a sentence; without `has_first_person`, facts in the first person are none."""
    if len(text) > MAX_ITEM_CHARS:
        return None
    text = _DASH.sub(", ", text)
    sentence = parse_sentence(text)
    if len(sentence.words) < MIN_ITEM_WORDS or sentence.is_question:
        return None
    kind = _kind(sentence, written_words(text), has_first_person=has_first_person)
    return kind if kind == "fact" or (kind and _has_content(sentence.words)) else None


def _kind(sentence: Sentence, written: list[str], *, has_first_person: bool) -> ItemKind | None:
    words, spaced = sentence
    labels = find_cue_labels(sentence)
    if "SPECULATION" in labels:
        labels -= ASSERTIVE
    if is_procedure(spaced):
        return "procedure"
    if kind := kind_of(labels, spaced):
        return kind
    if "SPECULATION" in labels or len(written) != len(words):
        return None
    return "fact" if states_fact(words, written, spaced, has_first_person=has_first_person) else None


def _has_content(words: list[str]) -> bool:
    stop_words = stop_words_of(words)
    return sum(word not in stop_words and word[0].isalnum() for word in words) >= MIN_CONTENT_WORDS
