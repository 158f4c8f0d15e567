"""Term coverage: the share of a question's terms that a text contains, weighted by rarity, in 0..1. Pure.

A text contains a term if it has that word, or one with the same stem in a language of the user's memories, as in the
lexical index.
"""

from collections.abc import Iterable, Sequence
from typing import Self

from agents.rules.index.bm25 import idf
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.ranking.query_features import QueryFeatures
from agents.rules.ranking.ranking import SCORE_DECIMALS
from agents.rules.text.stemming import stems
from agents.rules.text.tokenizer import tokenize

TermIndexes = frozenset[int]
"""Terms of a question by their places in it."""


class TermCoverage:
    """The terms of one question. `weights` are not negative; `languages` are indexes into `LANGUAGES`."""

    def __init__(self, terms: Sequence[str], weights: Sequence[float], languages: Sequence[int]) -> None:
        self._weights = list(weights)
        self._total = sum(weights)
        self._words: dict[str, set[int]] = {}
        self._stems: dict[int, dict[str, set[int]]] = {language: {} for language in languages}
        for place, word in enumerate(terms):
            self._words.setdefault(word, set()).add(place)
        for language, known in self._stems.items():
            for place, stem in enumerate(stems(terms, language)):
                known.setdefault(stem, set()).add(place)

    @classmethod
    def of(cls, features: QueryFeatures, memory_columns: MemoryColumns, *, weigh_unknown: bool) -> Self:
        """Weight the terms of a question by idf among the memories (`agents.rules.index.bm25.idf`).

        `weigh_unknown`: terms without any memory have the highest idf, because nothing can cover them; otherwise weight
        0, because they distinguish no memories.
        """
        frequencies = [len(one.numbers) for one in features.postings]
        weights = [idf(count, features.documents) if count or weigh_unknown else 0.0 for count in frequencies]
        return cls(features.question.terms, weights, memory_columns.languages())

    def terms_in(self, text: str) -> TermIndexes:
        """Return the terms that a text contains."""
        words = list(dict.fromkeys(tokenize(text)))
        found: set[int] = set()
        for word in words:
            found |= self._words.get(word, set())
        for language, known in self._stems.items():
            for stem in stems(words, language):
                found |= known.get(stem, set())
        return frozenset(found)

    def share(self, places: Iterable[int]) -> float:
        """Return the weight of these terms relative to all terms; 0 for a question without weights."""
        weight = sum(self._weights[place] for place in places)
        return round(min(weight / self._total, 1.0), SCORE_DECIMALS) if self._total else 0.0
