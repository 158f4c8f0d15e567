"""Which texts say nothing that is not there already: containment of word shingles. Pure.

A text is covered by another one when nearly all its runs of three words stand there too (Broder, "On the resemblance
and containment of documents", 1997: containment). Numbers, negations and names that only the new text has are never
covered: "at 9:00" and "at 10:00" differ in all that matters. Counted exactly, over an index of shingles, so the time
follows the text and not what is kept.
"""

import re
from collections import Counter

from agents.rules.text.tokenizer import fold

SHINGLE_WORDS = 3
"""Words of a run: of two, common phrases would count as content."""

MIN_SHINGLED_WORDS = 6
"""A shorter text takes little room and means what stands before it: "Yes, do it." is said of different things."""

MIN_CONTAINMENT = 0.8
"""Share of its shingles that make a text covered. Among the 3,352 turns of thirteen conversations of ours no two reach
more than 0.6, and with eight words or more 0.43; a copy of ten words with a word before or after it has 0.88."""

_WORD = re.compile(r"\w+(?:['\u2019.\-:/]\w+)*")
_NAME = re.compile(r"(?<=[^\s.!?:\u2026\"\u201c(] )[^\W\d_a-z]\w*(?:['\u2019.\-:/]\w+)*")
_DIGIT = re.compile(r"\d")
_NEGATIONS = (
    *("no", "not", "never", "none", "nobody", "nothing", "neither", "nor", "without"),
    *("nicht", "kein", "keine", "keinen", "nie", "niemals", "ohne"),
    *("ni", "nunca", "sin", "ne", "pas", "jamais", "sans", "rien", "aucun"),
)


class ShingleIndex:
    """Texts that are kept, and whether another one is covered by one of them."""

    def __init__(self) -> None:
        self._words: list[set[str]] = []
        self._having: dict[tuple[str, ...], list[int]] = {}

    def add(self, text: str) -> None:
        """Keep a text."""
        words = _WORD.findall(fold(text))
        for shingle in _shingles(words):
            self._having.setdefault(shingle, []).append(len(self._words))
        self._words.append(set(words))

    def covers(self, text: str) -> bool:
        """Whether one of the kept texts says all that this one says."""
        words = _WORD.findall(fold(text))
        if len(words) < MIN_SHINGLED_WORDS:
            return False
        shingles = _shingles(words)
        shared = Counter(kept for shingle in shingles for kept in self._having.get(shingle, ()))
        near = [kept for kept, count in shared.items() if count >= MIN_CONTAINMENT * len(shingles)]
        return bool(near) and any(_deciding(text, words) <= self._words[kept] for kept in near)


def _shingles(words: list[str]) -> set[tuple[str, ...]]:
    return set(zip(*(words[start:] for start in range(SHINGLE_WORDS)), strict=False))


def _deciding(text: str, words: list[str]) -> set[str]:
    """The words that decide what is meant, folded: numbers, identifiers, negations, and names within a sentence."""
    names = {fold(name) for name in _NAME.findall(text)}
    return names | {word for word in words if word in _NEGATIONS or word.endswith("n't") or _DIGIT.search(word)}
