"""How much of a question a text speaks of: the share of its telling words, weighed by how rare they are. Pure.

Enters: a question's terms with the weight of each, then texts. Leaves: which terms a text has, and their share of all
weight, in 0..1. A text has a term where it has that word, or one with the same stem in a language that is spoken among
the memories, as in the word index.
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
"""Some terms of a question, by their places in it."""


class TermCoverage:
    """The terms of one question. `weights` are not negative; `languages` are places in `LANGUAGES`."""

    def __init__(self, asked: Sequence[str], weights: Sequence[float], languages: Sequence[int]) -> None:
        self._weights = list(weights)
        self._whole = sum(weights)
        self._words: dict[str, set[int]] = {}
        self._stems: dict[int, dict[str, set[int]]] = {language: {} for language in languages}
        for place, word in enumerate(asked):
            self._words.setdefault(word, set()).add(place)
        for language, known in self._stems.items():
            for place, stem in enumerate(stems(asked, language)):
                known.setdefault(stem, set()).add(place)

    @classmethod
    def of(cls, clues: QueryFeatures, roster: MemoryColumns, *, weigh_unknown: bool) -> Self:
        """The terms of a question, weighed by their rarity among the memories (`agents.rules.index.bm25.idf`).

        `weigh_unknown`: a word that no memory has weighs the most, as nothing can answer for it; otherwise it weighs nothing,
        as it tells no memory from another.
        """
        frequencies = [len(one.numbers) for one in clues.postings]
        weights = [idf(count, clues.documents) if count or weigh_unknown else 0.0 for count in frequencies]
        return cls(clues.question.terms, weights, roster.languages())

    def terms_in(self, text: str) -> TermIndexes:
        """The terms that a text has."""
        words = list(dict.fromkeys(tokenize(text)))
        found: set[int] = set()
        for word in words:
            found |= self._words.get(word, set())
        for language, known in self._stems.items():
            for stem in stems(words, language):
                found |= known.get(stem, set())
        return frozenset(found)

    def share(self, places: Iterable[int]) -> float:
        """The share of these terms of the weight of all; 0 for a question without any."""
        weight = sum(self._weights[place] for place in places)
        return round(min(weight / self._whole, 1.0), SCORE_DECIMALS) if self._whole else 0.0
