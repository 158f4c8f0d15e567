"""Fuzzy word matching by shared character 4-grams. Pure.

Finds inflections and compounds without knowing the language: `Erhöhung` and `Mieterhöhung`, `envié` and `enviaron`.
Enters: folded words. Guaranteed: only words of at least `MIN_WORD_CHARS` letters, and of letters alone, match others;
numbers, versions and identifiers don't.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from agents.rules.index.columns import IntArray

NGRAM_SIZE = 4
"""Letters per n-gram: McNamee and Mayfield, "Character N-Gram Tokenization for European Language Text Retrieval"
(2004), find four best in most languages."""

MIN_WORD_CHARS = 5
"""Letters of a word that matches others: at least two n-grams."""

MIN_DICE = 0.6
"""Minimum Dice coefficient of matching words, 2 x shared n-grams / all n-grams. Measured on conversations: English
loses nothing, German and Spanish gain most between 0.5 and 0.6."""

NGRAM_BITS, NGRAM_MASK = 32, (1 << 32) - 1
"""An n-gram takes a byte per letter."""

_WORD_END = ord("\n")

NgramCodes = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class CharNgrams:
    """The sorted n-grams of some words: `owners` are indexes in `words`, `sizes` the distinct n-grams of each word."""

    words: Sequence[str]
    ngrams: NgramCodes
    owners: IntArray
    sizes: IntArray

    @classmethod
    def of(cls, words: Sequence[str]) -> Self:
        """Cut those of the words that can match others."""
        eligible = [word for word in words if len(word) >= MIN_WORD_CHARS and word.isalpha()]
        ngrams, owners = _cut(eligible)
        order = np.argsort(ngrams, kind="stable")
        return cls(eligible, ngrams[order], owners[order], np.bincount(owners, minlength=len(eligible)))

    def similar_words(self, queries: Self) -> list[list[str]]:
        """Return the matching words, for each of `queries.words`; a word that is indexed matches itself."""
        first = np.searchsorted(self.ngrams, queries.ngrams, "left")
        counts = np.searchsorted(self.ngrams, queries.ngrams, "right") - first
        starts = np.repeat(first - (np.cumsum(counts) - counts), counts)
        owners = self.owners[starts + np.arange(len(starts))]
        query_owners = np.repeat(queries.owners, counts)
        pairs, shared = np.unique(query_owners * max(len(self.words), 1) + owners, return_counts=True)
        query_owners, owners = np.divmod(pairs, max(len(self.words), 1))
        similar = 2 * shared >= MIN_DICE * (queries.sizes[query_owners] + self.sizes[owners])
        found: list[list[str]] = [[] for _ in queries.words]
        for query, owner in zip(query_owners[similar].tolist(), owners[similar].tolist(), strict=True):
            found[query].append(self.words[owner])
        return found


def _cut(words: Sequence[str]) -> tuple[NgramCodes, IntArray]:
    """Return the distinct n-grams of each word with the word's index; an n-gram is the low bytes of its letters."""
    letters = np.frombuffer("\n".join([*words, ""]).encode("utf-32-le", "surrogatepass"), np.uint32)
    ends = letters == _WORD_END
    owners = np.cumsum(ends)
    low = letters & np.uint32(0xFF)
    length = max(len(letters) - NGRAM_SIZE + 1, 0)
    ngrams: NgramCodes = np.zeros(length, np.uint32)
    is_within_word = np.ones(length, np.bool_)
    for offset in range(NGRAM_SIZE):
        ngrams = ngrams << np.uint32(8) | low[offset : offset + length]
        is_within_word &= ~ends[offset : offset + length]
    distinct = np.sort(owners[:length][is_within_word] << NGRAM_BITS | ngrams[is_within_word])
    distinct = distinct[np.diff(distinct, prepend=-1) != 0]
    return (distinct & NGRAM_MASK).astype(np.uint32), distinct >> NGRAM_BITS
