"""Words that are alike in their letters, by the runs of four letters that they share. Pure.

Finds inflections and compounds in any language, without knowing which: `Erhöhung` and `Mieterhöhung`, `envié` and
`enviaron`. Enters: folded words. Guaranteed: only words of `MIN_WORD_CHARS` letters or more, and of letters alone, are like
others; numbers, versions and identifiers are only what they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from agents.rules.index.columns import IntArray

NGRAM_SIZE = 4
"""Letters of a run: McNamee and Mayfield, "Character N-Gram Tokenization for European Language Text Retrieval"
(2004), find four best in most languages."""

MIN_WORD_CHARS = 5
"""Letters of a word that has any like it: two runs at least."""

MIN_DICE = 0.6
"""The Dice coefficient from which words are alike, 2 x shared runs / all runs. Measured on conversations: English
loses nothing, German and Spanish win most between 0.5 and 0.6."""

NGRAM_BITS, NGRAM_MASK = 32, (1 << 32) - 1
"""A run takes a byte for each letter."""

_BREAK = ord("\n")

NgramCodes = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class CharNgrams:
    """The runs of some words, sorted: `owners` are places in `words`, `sizes` how many different runs a word has."""

    words: Sequence[str]
    runs: NgramCodes
    owners: IntArray
    sizes: IntArray

    @classmethod
    def of(cls, words: Sequence[str]) -> Self:
        """The runs of those of the words that can have any like them."""
        chosen = [word for word in words if len(word) >= MIN_WORD_CHARS and word.isalpha()]
        runs, owners = _cut(chosen)
        order = np.argsort(runs, kind="stable")
        return cls(chosen, runs[order], owners[order], np.bincount(owners, minlength=len(chosen)))

    def similar_words(self, asked: Self) -> list[list[str]]:
        """For each word of `asked.words` the words here that are alike, itself if it is one of them."""
        first = np.searchsorted(self.runs, asked.runs, "left")
        counts = np.searchsorted(self.runs, asked.runs, "right") - first
        starts = np.repeat(first - (np.cumsum(counts) - counts), counts)
        owners = self.owners[starts + np.arange(len(starts))]
        askers = np.repeat(asked.owners, counts)
        pairs, shared = np.unique(askers * max(len(self.words), 1) + owners, return_counts=True)
        askers, owners = np.divmod(pairs, max(len(self.words), 1))
        near = 2 * shared >= MIN_DICE * (asked.sizes[askers] + self.sizes[owners])
        found: list[list[str]] = [[] for _ in asked.words]
        for asker, owner in zip(askers[near].tolist(), owners[near].tolist(), strict=True):
            found[asker].append(self.words[owner])
        return found


def _cut(words: Sequence[str]) -> tuple[NgramCodes, IntArray]:
    """The different runs of each word, and whose they are; a run is the low bytes of its letters."""
    letters = np.frombuffer("\n".join([*words, ""]).encode("utf-32-le", "surrogatepass"), np.uint32)
    ends = letters == _BREAK
    owners = np.cumsum(ends)
    low = letters & np.uint32(0xFF)
    length = max(len(letters) - NGRAM_SIZE + 1, 0)
    runs: NgramCodes = np.zeros(length, np.uint32)
    whole = np.ones(length, np.bool_)
    for place in range(NGRAM_SIZE):
        runs = runs << np.uint32(8) | low[place : place + length]
        whole &= ~ends[place : place + length]
    different = np.sort(owners[:length][whole] << NGRAM_BITS | runs[whole])
    different = different[np.diff(different, prepend=-1) != 0]
    return (different & NGRAM_MASK).astype(np.uint32), different >> NGRAM_BITS
