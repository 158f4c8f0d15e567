"""Which words of a text say what it is for: tables of cues in many languages, and how they are counted. Pure.

Enters: lines `GROUP language: phrase, phrase, stem*`, and texts. Leaves: for each group how often it was met at all and
how often at the beginning. Guaranteed: time linear in the text, whatever the number of phrases.
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
"""Words of a text in which a phrase has to begin to stand at its beginning."""

MAX_CUE_COUNT = 3
"""More of a group than that says no more."""

_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
"""Thai, Kana, Han and Hangul: their phrases are looked for inside of words."""

_UNSPACED_BEGINNING = 6
"""Characters that are the beginning there."""

MIN_STEM_CHARS = 2
"""Characters of a stem at least."""

CueCounts = NDArray[np.float64]
"""Shape (2, groups): at the beginning, and anywhere; each from 0 to 1."""

CueGroups = tuple[str, tuple[int, ...]]
"""A phrase or a stem, and the groups that it belongs to."""


@dataclass(frozen=True, slots=True)
class CueTable:
    """The groups by number; phrases by their first one or two words, stems by two characters, and pieces of words."""

    groups: tuple[str, ...]
    phrases: dict[str, tuple[CueGroups, ...]]
    stems: dict[str, tuple[CueGroups, ...]]
    pieces: tuple[tuple[str, int], ...]

    @classmethod
    def loads(cls, text: str) -> Self:
        """Read the table; lines that begin with `#` are remarks. Raises ValueError for a line of another form."""
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
        """What a folded text has of each group."""
        anywhere, early = [0] * len(self.groups), [0] * len(self.groups)
        words = _words(folded)
        pairs = [f"{one} {other}" for one, other in pairwise(words)]
        for start, word in enumerate(words):
            phrases = (*self.phrases.get(word, ()), *(self.phrases.get(pairs[start], ()) if start < len(pairs) else ()))
            stems = self.stems.get(word[:MIN_STEM_CHARS], ())
            met = [
                *(number for phrase, of in phrases if _stands(phrase, words, start) for number in of),
                *(number for stem, of in stems if word.startswith(stem) for number in of),
            ]
            for number in met:
                anywhere[number] += 1
                early[number] += start < BEGINNING_WORDS
        found = np.array([early, anywhere], np.float64)
        if _UNSPACED.search(folded):
            self._count_pieces(folded, found)
        return np.minimum(found, MAX_CUE_COUNT) / MAX_CUE_COUNT

    def _count_pieces(self, folded: str, found: CueCounts) -> None:
        for piece, number in self.pieces:
            place = folded.find(piece)
            if place >= 0:
                found[1, number] += 1
                found[0, number] += place < _UNSPACED_BEGINNING


_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")


def _words(folded: str) -> list[str]:
    return _WORD.findall(folded)


def _stands(phrase: str, words: list[str], start: int) -> bool:
    """Whether a phrase, the first one or two words of which stand there, goes on."""
    length = phrase.count(" ") + 1
    return length <= 2 or " ".join(words[start : start + length]) == phrase


def _grouped(numbers: dict[str, set[int]], key: Callable[[str], str]) -> dict[str, tuple[CueGroups, ...]]:
    grouped: dict[str, tuple[CueGroups, ...]] = {}
    for cue, groups in numbers.items():
        grouped[key(cue)] = (*grouped.get(key(cue), ()), (cue, tuple(sorted(groups))))
    return grouped
