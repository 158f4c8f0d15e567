"""Term coverage: the share of a question's terms that a text contains, weighted by rarity, in 0..1. Pure.

A text contains a term if it has that word, or one with the same stem in a language of the user's memories, as in the
lexical index. Entries of a layer suffice if together they cover nearly all terms, and contain a date or a number if the
question asks for one. Terms decide, not vectors: a merely similar entry must not end the search.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Self

from modestream_client.hits import Evidence, ItemInside

from agents.rules.cues.labels import find_form_labels
from agents.rules.index.bm25 import idf
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.query.questions import Question
from agents.rules.ranking.query_features import QueryFeatures
from agents.rules.ranking.ranking import SCORE_DECIMALS
from agents.rules.text.languages import stems
from agents.rules.text.tokenizer import content_terms, extract_entities, tokenize
from schemas.messages.retrieval import RetrieveRequest
from schemas.state.memories import Memory

TermIndexes = frozenset[int]
"""Terms of a question by their places in it."""


class TermCoverage:
    """The terms of one question. `weights` are not negative; `languages` are indexes into `LANGUAGES`."""

    def __init__(self, terms: Sequence[str], weights: Sequence[float], languages: Sequence[int]) -> None:
        self._weights = list(weights)
        self._total = sum(weights)
        self._words: dict[str, set[int]] = {}
        self._stems: dict[int, dict[str, set[int]]] = {language: {} for language in languages}
        for number, word in enumerate(terms):
            self._words.setdefault(word, set()).add(number)
        for language, of_language in self._stems.items():
            for number, stem in enumerate(stems(terms, language)):
                of_language.setdefault(stem, set()).add(number)

    @classmethod
    def of(cls, features: QueryFeatures, columns: MemoryColumns, *, weigh_unknown: bool) -> Self:
        """Weight the terms of a question by idf among the memories (`agents.rules.index.bm25.idf`).

        `weigh_unknown`: terms without any memory have the highest idf, because nothing can cover them; otherwise weight
        0, because they distinguish no memories.
        """
        frequencies = [len(term.numbers) for term in features.postings]
        weights = [idf(count, features.documents) if count or weigh_unknown else 0.0 for count in frequencies]
        return cls(features.question.terms, weights, columns.languages())

    def terms_in(self, text: str) -> TermIndexes:
        """Return the terms that a text contains."""
        words = list(dict.fromkeys(tokenize(text)))
        contained: set[int] = set()
        for word in words:
            contained |= self._words.get(word, set())
        for language, terms in self._stems.items():
            for stem in stems(words, language):
                contained |= terms.get(stem, set())
        return frozenset(contained)

    def share(self, places: Iterable[int]) -> float:
        """Return the weight of these terms relative to all terms; 0 for a question without weights."""
        weight = sum(self._weights[place] for place in places)
        return round(min(weight / self._total, 1.0), SCORE_DECIMALS) if self._total else 0.0


MIN_ITEM_COVERAGE = 0.2
"""Minimum term coverage of a matching item: one rare word in five. Chosen by reading, on our own chats."""

MAX_ITEMS_PER_HIT = 8
"""Maximum items of one hit; a long page has many segments."""


def match_items(items: Iterable[Memory], request: RetrieveRequest, coverage: TermCoverage) -> tuple[ItemInside, ...]:
    """Return the best items that match the question and the requested types, best first, ties by id."""
    shown = (
        ItemInside(
            memory_id=item.memory_id,
            type=item.type,
            kind=item.item.kind if item.item else None,
            text=item.text,
            score=coverage.share(coverage.terms_in(item.text)),
        )
        for item in items
        if (item.superseded_by is None or request.include_superseded)
        and (request.types is None or item.type in request.types)
    )
    best = sorted(
        (item for item in shown if item.score >= MIN_ITEM_COVERAGE), key=lambda item: (-item.score, item.memory_id)
    )
    return tuple(best[:MAX_ITEMS_PER_HIT])


def rank_evidence(
    evidence: Sequence[Evidence], texts: Mapping[str, str], coverage: TermCoverage
) -> tuple[Evidence, ...]:
    """Sort evidence by the coverage of its turn's text (`texts` by memory id), keeping the order of ties."""
    shares = {memory_id: coverage.share(coverage.terms_in(text)) for memory_id, text in texts.items()}
    return tuple(sorted(evidence, key=lambda quote: -shares.get(quote.memory_id or "", 0.0)))


MIN_COVERAGE = 0.75
"""Coverage that suffices: all of three equally rare words, four of five. High, as a deeper search loses nothing."""

MIN_ENTRY_COVERAGE = 0.25
"""Minimum coverage of a matching entry: one rare word of four."""

MIN_SHARE_OF_BEST = 0.5
"""Minimum coverage relative to the best entry; below it an entry only shares a word."""

ANSWER_LABELS: Mapping[str, frozenset[str]] = {
    "when": frozenset({"DATE", "TIME", "DURATION", "NUMBER"}),
    "how_many": frozenset({"NUMBER", "MONEY", "DURATION"}),
}
"""Labels of which an answer needs one, by question type (`agents.rules.query.questions`)."""


class Match(NamedTuple):
    """A matching entry: its position in the layer, the question's terms in it, and their coverage."""

    place: int
    terms: TermIndexes
    share: float


def match_entries(texts: Sequence[str], coverage: TermCoverage) -> list[Match]:
    """Return the matching entries, best first; ties keep their order."""
    matches = [Match(place, terms, coverage.share(terms)) for place, terms in enumerate(map(coverage.terms_in, texts))]
    least = max(MIN_ENTRY_COVERAGE, MIN_SHARE_OF_BEST * max((match.share for match in matches), default=0.0))
    return sorted((match for match in matches if match.share >= least), key=lambda match: -match.share)


def is_sufficient(matches: Sequence[Match], texts: Sequence[str], question: Question, coverage: TermCoverage) -> bool:
    """Return whether these entries of a layer suffice; `texts` are the texts of the whole layer."""
    terms = frozenset[int]().union(*(match.terms for match in matches))
    if not content_terms(question.text) or coverage.share(terms) < MIN_COVERAGE:
        return False
    asked = [ANSWER_LABELS[trait] for trait in question.traits if trait in ANSWER_LABELS]
    matching = [texts[match.place] for match in matches] if asked else []
    forms = set[str]().union(*(find_form_labels(text, extract_entities(text)) for text in matching))
    return all(not wanted.isdisjoint(forms) for wanted in asked)
