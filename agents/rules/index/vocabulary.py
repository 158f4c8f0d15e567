"""Query expansion by the words of one boundary: stems, and character n-grams of similar words. Pure.

Indexed words are not stemmed, so a term is the same whether or not the language of its text is known. A query word
expands to the words of the boundary with the same stem in a language spoken there, or with similar letters.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from agents.rules.index.columns import FloatArray, IntArray
from agents.rules.text.languages import stems
from agents.rules.text.tokenizer import MAX_TERM_CHARS

# Okapi BM25 with the statistics of one boundary. Pure.
#
# Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009). Scores are relative to a text
# of mean length that contains every query term once, and capped at 1, so they are comparable between queries.

K1 = 0.9
"""Term frequency saturation; low, because turns are short (measured on conversations)."""

B = 0.4
"""Length normalisation; the usual 0.75 penalises the most informative turns."""


@dataclass(frozen=True, slots=True)
class Postings:
    """Postings of one term: numbers of memories and counts in each, both of shape (memories,).

    `passages` has, for each of these memories, a bit for every passage of its text that has the term; 0 for a text that
    is not cut. None if no text is.
    """

    numbers: IntArray
    counts: IntArray
    passages: IntArray | None = None


def bm25(postings: Sequence[Postings], lengths: IntArray, documents: int) -> FloatArray:
    """Return the scores of all memories in 0..1, in the shape of `lengths`.

    `postings` has one entry per query term, `lengths` the term count of each memory by number; `documents` counts the
    numbers in use.
    """
    scores = np.zeros(len(lengths))
    total_weight = 0.0
    mean_length = max(float(lengths.sum()) / max(documents, 1), 1.0)
    for term in postings:
        weight = idf(len(term.numbers), documents)
        total_weight += weight
        damping = K1 * (1 - B + B * lengths[term.numbers] / mean_length)
        scores[term.numbers] += weight * (K1 + 1) * term.counts / (term.counts + damping)
    return np.minimum(scores / total_weight, 1.0) if total_weight else scores


def idf(frequency: int, documents: int) -> float:
    """Return the inverse document frequency of a term in `frequency` of `documents` memories; never negative."""
    return float(np.log1p((documents - frequency + 0.5) / (frequency + 0.5)))


NGRAM_SIZE = 4
"""Letters per n-gram: McNamee and Mayfield, "Character N-Gram Tokenization for European Language Text Retrieval"
(2004), find four best in most languages."""

MIN_WORD_CHARS = 5
"""Letters of a word that matches others: at least two n-grams."""

MIN_DICE = 0.6
"""Minimum Dice coefficient of matching words, 2 x shared n-grams / all n-grams. Measured on conversations: English
loses nothing, German and Spanish gain most between 0.5 and 0.6."""

MAX_NGRAM_PAIRS = 1_000_000
"""Maximum pairs, in one lookup, of a question's n-grams and the words that have them, each a few numbers in memory.
Words over two letters share all their n-grams, so that pairs grow with the product of both sides."""

MAX_SIMILAR_WORDS = 64
"""Maximum similar words of one term, by highest Dice coefficient: no word has more inflections."""

MAX_NGRAM_WORDS = 131_072
"""Maximum words of one boundary matched by their letters. Conversations of years have about 20,000; more is data, and
cutting its n-grams would block the questions of others."""

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
        """Cut words into n-grams; short words and words with digits match none and are left out."""
        eligible = [word for word in words if len(word) >= MIN_WORD_CHARS and word.isalpha()]
        # The distinct n-grams of each word with the word's index; an n-gram is the low bytes of its letters.
        letters = np.frombuffer("\n".join([*eligible, ""]).encode("utf-32-le", "surrogatepass"), np.uint32)
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
        ngrams, owners = (distinct & NGRAM_MASK).astype(np.uint32), distinct >> NGRAM_BITS
        order = np.argsort(ngrams, kind="stable")
        return cls(eligible, ngrams[order], owners[order], np.bincount(owners, minlength=len(eligible)))

    def similar_words(self, queries: Self) -> list[list[str]]:
        """Return at most `MAX_SIMILAR_WORDS` matching words for each of `queries.words`, itself among them if indexed.

        Beyond `MAX_NGRAM_PAIRS` the n-grams that most words have count as not shared: fewer words match.
        """
        # The pairs of words with shared n-grams: indexes in `queries`, indexes here, and the shared number.
        first = np.searchsorted(self.ngrams, queries.ngrams, "left")
        counts = np.searchsorted(self.ngrams, queries.ngrams, "right") - first
        query_owners = queries.owners
        if int(counts.sum()) > MAX_NGRAM_PAIRS:
            rarest = np.argsort(counts, kind="stable")
            rarest = np.sort(rarest[np.cumsum(counts[rarest]) <= MAX_NGRAM_PAIRS])
            first, counts, query_owners = first[rarest], counts[rarest], query_owners[rarest]
        starts = np.repeat(first - (np.cumsum(counts) - counts), counts)
        owners = self.owners[starts + np.arange(len(starts))]
        width = max(len(self.words), 1)
        pairs, shared = np.unique(np.repeat(query_owners, counts) * width + owners, return_counts=True)
        query_owners, owners = pairs // width, pairs % width
        dice = 2 * shared / (queries.sizes[query_owners] + self.sizes[owners])
        similar = 2 * shared >= MIN_DICE * (queries.sizes[query_owners] + self.sizes[owners])
        query_owners, owners, dice = query_owners[similar], owners[similar], dice[similar]
        order = np.lexsort((owners, -dice, query_owners))
        owners_by_query: list[list[int]] = [[] for _ in queries.words]
        for query, owner in zip(query_owners[order].tolist(), owners[order].tolist(), strict=True):
            owners_by_query[query].append(owner)
        return [[self.words[owner] for owner in sorted(best[:MAX_SIMILAR_WORDS])] for best in owners_by_query]


MAX_INSERTED_WORDS = 64
"""Maximum new words inserted into the sorted list one by one; with more, the list is sorted again."""

MIN_PENDING_WORDS = 256
"""Minimum new words before the n-grams of all words are cut again; until then theirs are kept apart."""

_LAST = "\U0010ffff"


class Vocabulary:
    """The distinct words of one boundary; grows only. `words` are folded, in any order, each once.

    Of more than `MAX_NGRAM_WORDS` the shortest are matched by their letters: long ones are data rather than language.
    """

    def __init__(self, words: Iterable[str] = ()) -> None:
        self._words = sorted(words)
        self._ngrams = self._cut_all()
        self._recent: list[str] = []
        self._recent_ngrams = CharNgrams.of(())
        self._pending: set[str] = set()

    def __len__(self) -> int:
        self._index_pending()
        return len(self._words)

    @property
    def estimated_words(self) -> int:
        """The number of words, without a search for pending ones among the known: at least `len`."""
        return len(self._words) + len(self._recent) + len(self._pending)

    def add(self, words: Iterable[str]) -> None:
        """Add words, known or new; they are indexed by the next query."""
        self._pending.update(words)

    def expand_terms(self, terms: Sequence[str], languages: Sequence[int], *, fuzzy: bool = True) -> list[list[str]]:
        """Return, for each term, the words of this boundary that match it, sorted.

        `languages` are indexes in `agents.rules.text.languages.LANGUAGES`. `fuzzy` adds words with similar letters to
        those with the same stem.
        """
        self._index_pending()
        expansions = [{term} if self._contains(term) else set() for term in terms]
        for language in languages:
            for term, stem, words in zip(terms, stems(terms, language), expansions, strict=True):
                words.update(self._words_with_stem(term, stem, language))
        if fuzzy:
            queries = CharNgrams.of(terms)
            similar: dict[str, set[str]] = {term: set() for term in queries.words}
            for ngrams in (self._ngrams, self._recent_ngrams) if self._recent else (self._ngrams,):
                for term, matching in zip(queries.words, ngrams.similar_words(queries), strict=True):
                    similar[term].update(matching)
            for term, words_of_term in zip(terms, expansions, strict=True):
                words_of_term.update(similar.get(term, ()))
        return [sorted(words) for words in expansions]

    def containing(self, fragment: str) -> list[str]:
        """Return the words with these letters in them, and those that were cut at their end, which may have had them.

        `fragment` is one of `agents.rules.text.tokenizer.fragments`; joints within an identifier do not count.
        """
        self._index_pending()
        return [
            word
            for word in self._words
            if fragment in word or len(word) >= MAX_TERM_CHARS or ("_" in word and fragment in word.replace("_", ""))
        ]

    def _words_with_stem(self, term: str, stem: str, language: int) -> list[str]:
        """Return the words with this stem, searched by the stem without its last letter, which stemmers may change."""
        prefix = stem[: max(len(stem) - 1, min(len(stem), 2))]
        if not term.startswith(prefix):
            return []
        start, end = bisect_left(self._words, prefix), bisect_left(self._words, prefix + _LAST)
        candidates = self._words[start:end]
        return [word for word, its in zip(candidates, stems(candidates, language), strict=True) if its == stem]

    def _contains(self, word: str) -> bool:
        index = bisect_left(self._words, word)
        return index < len(self._words) and self._words[index] == word

    def _index_pending(self) -> None:
        if not self._pending:
            return
        new = [word for word in self._pending if not self._contains(word)]
        self._pending.clear()
        if not new:
            return
        if len(new) <= MAX_INSERTED_WORDS:
            for word in new:
                insort(self._words, word)
        else:
            self._words = sorted([*self._words, *new])
        self._recent += new
        if len(self._recent) > max(MIN_PENDING_WORDS, len(self._words) // 8):
            self._ngrams, self._recent = self._cut_all(), []
        self._recent_ngrams = CharNgrams.of(self._recent)

    def _cut_all(self) -> CharNgrams:
        words = self._words
        return CharNgrams.of(words if len(words) <= MAX_NGRAM_WORDS else sorted(words, key=len)[:MAX_NGRAM_WORDS])
