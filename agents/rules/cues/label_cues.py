"""Match the cue phrases and patterns in a sentence, indexed by their first words. Pure.

Guaranteed: time linear in the sentence, independent of the number of phrases.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise, product
from typing import NamedTuple

from agents.rules.cues.decision_patterns import DECISION_PATTERNS, NO_DECISION_CONTEXT
from agents.rules.cues.error_patterns import ERROR_PATTERNS, HARM, NO_ERROR_CONTEXT, SAFETY_PATTERNS
from agents.rules.cues.label_phrases import CUE_PHRASES, OPENING_FILLERS, TASK_OPENING
from agents.rules.cues.preference_patterns import (
    CORRECTION_PATTERNS,
    NO_CORRECTION_CONTEXT,
    PREFERENCE_PATTERNS,
    STANDING,
    WITHDRAWAL_PATTERNS,
)
from agents.rules.cues.rule_patterns import NO_RULE_CONTEXT, RULE_PATTERNS
from agents.rules.text.sentences import Sentence

RULE_LABELS = frozenset({"SAFETY", "CONSTRAINT"})
"""Labels that a report of a supposition ("I thought we must …") never has."""

_REPORT_LABELS = frozenset({"CORRECTION", "ERROR", "RESOLVED", "DECISION", "DONE", "CHANGE"})

ASSERTIVE = RULE_LABELS | _REPORT_LABELS | {"GOAL", "PREFERENCE", "STANDING_PREFERENCE", "INSTRUCTION", "WITHDRAWAL"}
"""Labels that a question or a supposition never has."""

PREFIX_CHARS = 4
"""Index key length of a single word with a wildcard ending."""

MAX_FILLERS = 2
"""Filler words to skip at the beginning of a sentence."""


class Cue(NamedTuple):
    """A phrase with a space before it, and one after it unless its last word has a wildcard ending."""

    label: str
    is_at_start: bool
    is_at_end: bool
    spaced: str

    def matches(self, spaced: str, opening: str) -> bool:
        """True if a sentence has this phrase; `opening` is the sentence without leading fillers."""
        if self.is_at_end and not opening.endswith(self.spaced):
            return False
        return opening.startswith(self.spaced) if self.is_at_start else self.spaced in spaced


_CHOICE = re.compile(r"\{([^}]*)\}")


def _expand_phrases(row: str) -> Iterator[str]:
    for part in re.split(r"(?<! ),\s", re.sub(r"\|\s+", "|", row.strip())):
        pieces = _CHOICE.split(part.strip())
        choices = [piece.split("|") if index % 2 else [piece] for index, piece in enumerate(pieces)]
        yield from ("".join(chosen) for chosen in product(*choices))


def _cues_by_key() -> dict[str, tuple[Cue, ...]]:
    """Return the cues by index key: the first two words of a cue, its first word, or the prefix of that."""
    groups: dict[str, dict[Cue, None]] = {}
    for label, row in CUE_PHRASES.items():
        for phrase in _expand_phrases(row):
            words = phrase.strip("^$").split()
            has_wildcard = words[-1].endswith("*")
            spaced = f" {' '.join(words)}".rstrip("*") + ("" if has_wildcard else " ")
            key = words[0] if len(words) == 1 or (has_wildcard and len(words) == 2) else " ".join(words[:2])
            key = key.rstrip("*")[: PREFIX_CHARS if has_wildcard and len(words) == 1 else None]
            groups.setdefault(key, {})[Cue(label, phrase.startswith("^"), phrase.endswith("$"), spaced)] = None
    return {key: tuple(group) for key, group in groups.items()}


LABEL_PATTERNS = (
    *RULE_PATTERNS,
    *SAFETY_PATTERNS,
    *PREFERENCE_PATTERNS,
    *DECISION_PATTERNS,
    *CORRECTION_PATTERNS,
    *ERROR_PATTERNS,
    *WITHDRAWAL_PATTERNS,
)

_EXCLUDING_CONTEXTS = (
    (RULE_LABELS, NO_RULE_CONTEXT),
    (RULE_LABELS | {"ERROR"}, TASK_OPENING),
    (frozenset({"DECISION"}), NO_DECISION_CONTEXT),
    (frozenset({"CORRECTION"}), NO_CORRECTION_CONTEXT),
    (frozenset({"ERROR"}), NO_ERROR_CONTEXT),
)
"""Labels that a sentence does not have in some contexts."""

KEPT_SENTENCES = 256
"""Cached sentences: those of a turn are read for its items, and again for its labels."""

_FILLERS = frozenset(OPENING_FILLERS.split())
_CUES = _cues_by_key()
_PATTERNS = {
    word: [index for index, pattern in enumerate(LABEL_PATTERNS) if word in pattern.triggers]
    for pattern in LABEL_PATTERNS
    for word in pattern.triggers
}
_CUE_KEYS, _PATTERN_KEYS = frozenset(_CUES), frozenset(_PATTERNS)


def find_cue_labels(sentence: Sentence) -> set[str]:
    """Return the names of the labels of a sentence by its words."""
    return set(_labels_of(sentence.spaced))


@lru_cache(KEPT_SENTENCES)
def _labels_of(spaced: str) -> frozenset[str]:
    words = spaced.split()
    start = 0
    while start < min(MAX_FILLERS, len(words) - 1) and words[start] in _FILLERS:
        start += 1
    opening = f" {' '.join(words[start:])} " if words[0] in _FILLERS else spaced
    keys = {*words, *[word[:PREFIX_CHARS] for word in words], *map(" ".join, pairwise(words))}
    labels = {cue.label for key in keys & _CUE_KEYS for cue in _CUES[key] if cue.matches(spaced, opening)}
    for index in {index for word in keys & _PATTERN_KEYS for index in _PATTERNS[word]}:
        label, _, pattern = LABEL_PATTERNS[index]
        if label not in labels and (pattern.search(spaced) or (opening is not spaced and pattern.search(opening))):
            labels.add(label)
    if "CONSTRAINT" in labels and HARM.search(spaced):
        labels.add("SAFETY")
    if "WITHDRAWAL" in labels:
        labels -= RULE_LABELS
    for excluded, context in _EXCLUDING_CONTEXTS:
        if labels & excluded and context.search(spaced):
            labels -= excluded
    if "INSTRUCTION" in labels and TASK_OPENING.search(spaced) and not STANDING.search(spaced):
        labels.discard("INSTRUCTION")
    return frozenset(labels)
