"""Which phrases and forms a sentence has, found by their first words. Pure.

Guaranteed: time linear in the sentence, whatever the number of phrases.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise, product
from typing import NamedTuple

from agents.rules.cues.label_patterns import LABEL_PATTERNS, NO_ERROR_CONTEXT, SUPPOSITION
from agents.rules.cues.label_phrases import CUE_PHRASES, OPENING_FILLERS
from agents.rules.text.sentences import Sentence

ASSERTIVE = frozenset(
    {
        "SAFETY",
        "CONSTRAINT",
        "CORRECTION",
        "ERROR",
        "RESOLVED",
        "DECISION",
        "DONE",
        "CHANGE",
        "GOAL",
        "PREFERENCE",
        "INSTRUCTION",
    }
)
"""Marks that a question or a supposition never has."""

RULE_LABELS = frozenset({"SAFETY", "CONSTRAINT"})
"""Marks that a sentence does not have which only tells what somebody supposed."""

PREFIX_CHARS = 4
"""Letters of a single word with any ending that it is looked up by."""

MAX_FILLERS = 2
"""Words that may stand before what counts as the beginning."""


class Cue(NamedTuple):
    """A phrase with a space before it, and after it where its last word is whole."""

    mark: str
    opens: bool
    ends: bool
    spaced: str

    def stands(self, spaced: str, opening: str) -> bool:
        """Whether a sentence has this phrase; `opening` is the sentence from where it begins to tell."""
        if self.ends and not opening.endswith(self.spaced):
            return False
        return opening.startswith(self.spaced) if self.opens else self.spaced in spaced


_CHOICE = re.compile(r"\{([^}]*)\}")


def _phrases(row: str) -> Iterator[str]:
    """The phrases of one row, every choice written out."""
    for part in re.split(r"(?<! ),\s", re.sub(r"\|\s+", "|", row.strip())):
        pieces = _CHOICE.split(part.strip())
        choices = [piece.split("|") if place % 2 else [piece] for place, piece in enumerate(pieces)]
        yield from ("".join(chosen) for chosen in product(*choices))


def _cues() -> Iterator[tuple[str, Cue]]:
    """Every cue with what it is found by: its first two words, its first word, or the beginning of that."""
    for mark, row in CUE_PHRASES.items():
        for phrase in _phrases(row):
            words = phrase.strip("^$").split()
            stem = words[-1].endswith("*")
            spaced = f" {' '.join(words)}".rstrip("*") + ("" if stem else " ")
            key = words[0] if len(words) == 1 or (stem and len(words) == 2) else " ".join(words[:2])
            key = key.rstrip("*")[: PREFIX_CHARS if stem and len(words) == 1 else None]
            yield key, Cue(mark, phrase.startswith("^"), phrase.endswith("$"), spaced)


def _grouped(pairs: Iterable[tuple[str, Cue]]) -> dict[str, tuple[Cue, ...]]:
    groups: dict[str, dict[Cue, None]] = {}
    for key, cue in pairs:
        groups.setdefault(key, {})[cue] = None
    return {key: tuple(group) for key, group in groups.items()}


_FILLERS = frozenset(OPENING_FILLERS.split())
_CUES = _grouped(_cues())
_FORMS = {
    word: [place for place, form in enumerate(LABEL_PATTERNS) if word in form.triggers]
    for form in LABEL_PATTERNS
    for word in form.triggers
}
_CUE_KEYS, _FORM_KEYS = frozenset(_CUES), frozenset(_FORMS)


def find_cue_labels(sentence: Sentence) -> set[str]:
    """The names of the marks that the words of a sentence give it."""
    words, spaced = sentence
    opening = _opening(words) if words[0] in _FILLERS else spaced
    keys = {*words, *[word[:PREFIX_CHARS] for word in words], *map(" ".join, pairwise(words))}
    names = {cue.mark for key in keys & _CUE_KEYS for cue in _CUES[key] if cue.stands(spaced, opening)}
    for place in {place for word in keys & _FORM_KEYS for place in _FORMS[word]}:
        mark, _, pattern = LABEL_PATTERNS[place]
        if mark not in names and (pattern.search(spaced) or (opening is not spaced and pattern.search(opening))):
            names.add(mark)
    if "ERROR" in names and NO_ERROR_CONTEXT.search(spaced):
        names.discard("ERROR")
    if names & RULE_LABELS and SUPPOSITION.search(spaced):
        names -= RULE_LABELS
    return names


def _opening(words: list[str]) -> str:
    """The sentence without the fillers that it begins with."""
    start = 0
    while start < min(MAX_FILLERS, len(words) - 1) and words[start] in _FILLERS:
        start += 1
    return f" {' '.join(words[start:])} "
