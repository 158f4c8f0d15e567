"""Which words of a text say what it is for: tables of cues in many languages, and how they are counted. Pure.

Enters: lines `GROUP language: phrase, phrase, stem*`, and texts. Leaves: for each group how often it was met at all and
how often at the beginning. Guaranteed: time linear in the text, whatever the number of phrases.
"""

import re
from dataclasses import dataclass
from itertools import accumulate
from typing import Self

import numpy as np
from numpy.typing import NDArray

from agents.rules.words import fold

LONGEST_PHRASE = 4
"""Words of the longest phrase that is looked for."""

BEGINNING = 3
"""Words of a text in which a phrase has to begin to stand at its beginning."""

MOST_COUNTED = 3
"""More of a group than that says no more."""

_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
"""Thai, Kana, Han and Hangul: their phrases are looked for inside of words."""

_UNSPACED_BEGINNING = 6
"""Characters that are the beginning there."""

_STEMS = range(2, 13)
"""Characters of the stems that are looked for."""

Counts = NDArray[np.float64]
"""Shape (2, groups): at the beginning, and anywhere; each from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Cues:
    """The groups by number, with what is looked for of each."""

    groups: tuple[str, ...]
    phrases: dict[str, tuple[int, ...]]
    stems: dict[str, tuple[int, ...]]
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
                elif cue.endswith("*"):
                    stems.setdefault(" ".join(_words(cue)), set()).add(number)
                else:
                    phrases.setdefault(" ".join(_words(cue)), set()).add(number)
        return cls(groups, _sorted(phrases), _sorted(stems), tuple(pieces))

    def counts(self, folded: str) -> Counts:
        """What a folded text has of each group."""
        found = np.zeros((2, len(self.groups)))
        words = _words(folded)
        for start, first in enumerate(words):
            early = start < BEGINNING
            for phrase in accumulate(words[start : start + LONGEST_PHRASE], "{} {}".format):
                for number in self.phrases.get(phrase, ()):
                    found[1, number] += 1
                    found[0, number] += early
            for length in _STEMS[: max(0, len(first) - 1)]:
                for number in self.stems.get(first[:length], ()):
                    found[1, number] += 1
                    found[0, number] += early
        if _UNSPACED.search(folded):
            self._count_pieces(folded, found)
        return np.minimum(found, MOST_COUNTED) / MOST_COUNTED

    def _count_pieces(self, folded: str, found: Counts) -> None:
        for piece, number in self.pieces:
            place = folded.find(piece)
            if place >= 0:
                found[1, number] += 1
                found[0, number] += place < _UNSPACED_BEGINNING


_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")


def _words(folded: str) -> list[str]:
    return _WORD.findall(folded)


def _sorted(numbers: dict[str, set[int]]) -> dict[str, tuple[int, ...]]:
    return {cue: tuple(sorted(groups)) for cue, groups in numbers.items()}
