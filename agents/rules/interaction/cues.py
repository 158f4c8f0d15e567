"""Cue phrases of interaction modes in many languages, and their counts in a text. Pure.

Enters: lines `GROUP language: phrase, phrase, stem*`, and texts. Leaves: for each group its number of matches, anywhere
and at the beginning. Guaranteed: time linear in the text, whatever the number of phrases.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from agents.rules.text.tokenizer import fold

BEGINNING_WORDS = 3
"""First words of a text, in one of which a phrase at the beginning starts."""

MAX_CUE_COUNT = 3
"""Matches of a group above which the count is clipped."""

_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
"""Thai, Kana, Han and Hangul: their phrases match inside words."""

_UNSPACED_BEGINNING_CHARS = 6
"""First characters of an unspaced text, in one of which a phrase at the beginning starts."""

MIN_STEM_CHARS = 2
"""Characters of the prefix by which stems are looked up; a stem has at least as many."""

CueCounts = NDArray[np.float64]
"""Shape (2, groups): matches at the beginning, and anywhere; scaled to 0..1."""

CueGroups = tuple[str, tuple[int, ...]]
"""A phrase or a stem, and its groups."""


@dataclass(frozen=True, slots=True)
class CueTable:
    """Groups by number; phrases by their first one or two words, stems by two characters; pieces of unspaced text."""

    groups: tuple[str, ...]
    phrases: dict[str, tuple[CueGroups, ...]]
    stems: dict[str, tuple[CueGroups, ...]]
    pieces: tuple[tuple[str, int], ...]

    @classmethod
    def loads(cls, text: str) -> Self:
        """Parse the table; lines that begin with `#` are comments. Raises ValueError for a malformed line."""
        rows = [line.split(":", 1) for line in text.splitlines() if line and not line.startswith("#")]
        groups = tuple(dict.fromkeys(head.split()[0] for head, _ in rows))
        phrases: dict[str, set[int]] = {}
        stems: dict[str, set[int]] = {}
        pieces: dict[tuple[str, int], None] = {}
        for head, listed in rows:
            number = groups.index(head.split()[0])
            for cue in filter(None, (fold(cue.strip()) for cue in listed.split(","))):
                if _UNSPACED.search(cue):
                    pieces[cue, number] = None
                else:
                    kind = stems if cue.endswith("*") else phrases
                    kind.setdefault(" ".join(_words(cue)), set()).add(number)
        by_words, by_start = (lambda phrase: " ".join(phrase.split(" ")[:2])), (lambda stem: stem[:MIN_STEM_CHARS])
        return cls(groups, _grouped(phrases, by_words), _grouped(stems, by_start), tuple(pieces))

    def counts(self, folded: str) -> CueCounts:
        """Count the matches of each group in a folded text."""
        anywhere, early = [0] * len(self.groups), [0] * len(self.groups)
        words = _words(folded)
        pairs = [f"{one} {other}" for one, other in pairwise(words)]
        for start, word in enumerate(words):
            phrases = (*self.phrases.get(word, ()), *(self.phrases.get(pairs[start], ()) if start < len(pairs) else ()))
            stems = self.stems.get(word[:MIN_STEM_CHARS], ())
            matched = [
                *(number for phrase, of in phrases if _continues(phrase, words, start) for number in of),
                *(number for stem, of in stems if word.startswith(stem) for number in of),
            ]
            for number in matched:
                anywhere[number] += 1
                early[number] += start < BEGINNING_WORDS
        found = np.array([early, anywhere], np.float64)
        if _UNSPACED.search(folded):
            self._count_pieces(folded, found)
        return np.minimum(found, MAX_CUE_COUNT) / MAX_CUE_COUNT

    def _count_pieces(self, folded: str, found: CueCounts) -> None:
        for piece, number in self.pieces:
            start = folded.find(piece)
            if start >= 0:
                found[1, number] += 1
                found[0, number] += start < _UNSPACED_BEGINNING_CHARS


_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")


def _words(folded: str) -> list[str]:
    return _WORD.findall(folded)


def _continues(phrase: str, words: list[str], start: int) -> bool:
    """Return True if the phrase matches at `start`, given that its first one or two words do."""
    length = phrase.count(" ") + 1
    return length <= 2 or " ".join(words[start : start + length]) == phrase


def _grouped(numbers: dict[str, set[int]], key: Callable[[str], str]) -> dict[str, tuple[CueGroups, ...]]:
    grouped: dict[str, tuple[CueGroups, ...]] = {}
    for cue, groups in numbers.items():
        grouped[key(cue)] = (*grouped.get(key(cue), ()), (cue, tuple(sorted(groups))))
    return grouped
