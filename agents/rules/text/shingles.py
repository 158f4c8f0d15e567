"""Near-duplicate detection by containment of word shingles. Pure.

A text is covered by another one that contains nearly all its runs of three words (Broder, "On the resemblance and
containment of documents", 1997: containment) and all its numbers, negations and names: "at 9:00" and "at 10:00" differ.
Counts are over an inverted index of shingles: time grows with what texts share, not with their number. They are exact
up to `MAX_COUNTED_SHINGLES`; beyond it fewer texts are covered, never more.
"""

import re
from collections import Counter
from itertools import chain, islice

from agents.rules.text.tokenizer import fold

SHINGLE_WORDS = 3
"""Words per shingle: with two, common phrases would count as content."""

MIN_SHINGLED_WORDS = 6
"""Shorter texts are never covered: they take little room, and "Yes, do it." refers to the turn before."""

MIN_CONTAINMENT = 0.8
"""Required share of a text's shingles. Among the 3,352 turns of thirteen conversations of ours no pair exceeds 0.6, and
with eight words or more 0.43; a copy of ten words with a word before or after it has 0.88."""

MAX_COUNTED_SHINGLES = 200_000
"""Shingles of indexed texts to count for one text: those of some 40 indexed texts of 32,768 characters that share all
their words. Beyond it, texts without the deciding words are left out of the count, and it ends at this number."""

_WORD = re.compile(r"\w+(?:['\u2019.\-:/]\w+)*")
_NAME = re.compile(r"(?<=[^\s.!?:\u2026\"\u201c(] )[^\W\d_a-z]\w*(?:['\u2019.\-:/]\w+)*")
_DIGIT = re.compile(r"\d")
_NEGATIONS = (
    *("no", "not", "never", "none", "nobody", "nothing", "neither", "nor", "without"),
    *("nicht", "kein", "keine", "keinen", "nie", "niemals", "ohne"),
    *("ni", "nunca", "sin", "ne", "pas", "jamais", "sans", "rien", "aucun"),
)


class ShingleIndex:
    """Indexed texts, to test whether one of them covers another text."""

    def __init__(self) -> None:
        self._words: list[set[str]] = []
        self._texts_by_shingle: dict[tuple[str, ...], list[int]] = {}

    def add(self, text: str) -> None:
        """Index a text."""
        words = _WORD.findall(fold(text))
        for shingle in _shingles(words):
            self._texts_by_shingle.setdefault(shingle, []).append(len(self._words))
        self._words.append(set(words))

    def covers(self, text: str) -> bool:
        """True if one of the indexed texts says all that this one says."""
        words = _WORD.findall(fold(text))
        if len(words) < MIN_SHINGLED_WORDS:
            return False
        shingles = _shingles(words)
        found = [texts for shingle in shingles if (texts := self._texts_by_shingle.get(shingle))]
        decisive = _decisive_words(text, words)
        shared = self._shared(found, decisive)
        return any(
            count >= MIN_CONTAINMENT * len(shingles) and decisive <= self._words[index]
            for index, count in shared.items()
        )

    def _shared(self, found: list[list[int]], decisive: set[str]) -> Counter[int]:
        """Count the shingles that each indexed text shares; above the limit, of those with the deciding words only."""
        counted = chain.from_iterable(found)
        if sum(map(len, found)) <= MAX_COUNTED_SHINGLES:
            return Counter(counted)
        candidates = {index for index, known in enumerate(self._words) if decisive <= known}
        if not candidates:
            return Counter()
        return Counter(index for index in islice(counted, MAX_COUNTED_SHINGLES) if index in candidates)


def _shingles(words: list[str]) -> set[tuple[str, ...]]:
    return set(zip(*(words[start:] for start in range(SHINGLE_WORDS)), strict=False))


def _decisive_words(text: str, words: list[str]) -> set[str]:
    """Return the folded words that decide the meaning: numbers, identifiers, negations, and names within a sentence."""
    names = {fold(name) for name in _NAME.findall(text)}
    return names | {word for word in words if word in _NEGATIONS or word.endswith("n't") or _DIGIT.search(word)}
