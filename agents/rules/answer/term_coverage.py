"""Term coverage: the share of a question's terms that a text contains, weighted by rarity, in 0..1. Pure.

A text contains a term if it has that word, or one with the same stem in a language of the user's memories, as in the
lexical index.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from agents.rules.index.bm25 import idf
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.ranking.query_features import QueryFeatures
from agents.rules.ranking.ranking import SCORE_DECIMALS
from agents.rules.text.stemming import stems
from agents.rules.text.tokenizer import tokenize
from schemas.messages.retrieval import ItemInside, RetrieveRequest
from schemas.state.memories import Evidence, Memory

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


MIN_ITEM_COVERAGE = 0.2
"""Minimum term coverage of a matching item: one rare word in five. Chosen by reading, on our own chats."""

MAX_ITEMS_PER_HIT = 8
"""Best items of one hit; a long page has many segments."""


def match_items(items: Iterable[Memory], request: RetrieveRequest, coverage: TermCoverage) -> tuple[ItemInside, ...]:
    """Return the best items that match the question and the requested types, best first, ties by id."""
    shown = (_item_inside(item, coverage) for item in items if _is_requested(item, request))
    found = sorted(
        (one for one in shown if one.score >= MIN_ITEM_COVERAGE), key=lambda one: (-one.score, one.memory_id)
    )
    return tuple(found[:MAX_ITEMS_PER_HIT])


def rank_evidence(
    evidence: Sequence[Evidence], texts: Mapping[str, str], coverage: TermCoverage
) -> tuple[Evidence, ...]:
    """Sort evidence by the coverage of its turn's text (`texts` by memory id), keeping the order of ties."""
    shares = {memory_id: coverage.share(coverage.terms_in(text)) for memory_id, text in texts.items()}
    return tuple(sorted(evidence, key=lambda one: -shares.get(one.memory_id or "", 0.0)))


def _is_requested(item: Memory, request: RetrieveRequest) -> bool:
    live = item.superseded_by is None or request.include_superseded
    return live and (request.types is None or item.type in request.types)


def _item_inside(item: Memory, coverage: TermCoverage) -> ItemInside:
    return ItemInside(
        memory_id=item.memory_id,
        type=item.type,
        kind=item.item.kind if item.item else None,
        text=item.text,
        score=coverage.share(coverage.terms_in(item.text)),
    )
