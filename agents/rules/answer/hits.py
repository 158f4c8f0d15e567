"""Hits and warnings of an answer, and the best passages of long hits for one question. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Self

import numpy as np
from modestream_client.hits import Evidence, Hit, ItemInside, Passage, Scores
from modestream_client.vocabulary import MemoryType

from agents.rules.cues.labels import find_form_labels
from agents.rules.index.columns import FloatArray
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.index.vocabulary import Postings, idf
from agents.rules.query.questions import Question
from agents.rules.ranking.memory_features import QueryFeatures
from agents.rules.ranking.rank_fusion import FusionMethod
from agents.rules.ranking.ranking import SCORE_DECIMALS
from agents.rules.text.languages import stems
from agents.rules.text.passages import Span
from agents.rules.text.tokenizer import content_terms, extract_entities, tokenize
from schemas.messages.retrieval import RetrieveRequest
from schemas.models.vectors import Nearest
from schemas.moments import iso
from schemas.state.memories import Memory

# Term coverage: the share of a question's terms that a text contains, weighted by rarity, in 0..1. Pure.
#
# A text contains a term if it has that word, or one with the same stem in a language of the user's memories, as in the
# lexical index. Entries of a layer suffice if together they cover nearly all terms, and contain a date or a number if
# the question asks for one. Terms decide, not vectors: a merely similar entry must not end the search.

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
        """Weight the terms of a question by idf among the memories (`agents.rules.index.vocabulary.idf`).

        `weigh_unknown`: terms without any memory have the highest idf, because nothing can cover them; otherwise weight
        0, because they distinguish no memories.
        """
        frequencies = [len(term.numbers) for term in features.postings]
        weights = [idf(count, features.documents) if count or weigh_unknown else 0.0 for count in frequencies]
        return cls(features.question.terms, weights, columns.languages())

    def terms_in(self, text: str) -> TermIndexes:
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


SearchWarning = tuple[str, str]
"""Code and message."""


def hit_of(
    memory: Memory,
    score: float,
    scores: Scores | None = None,
    contributions: Mapping[str, float] | None = None,
    *,
    shown_as: MemoryType | None = None,
    as_of: datetime | None = None,
) -> Hit:
    """Return a memory as a hit, as of now or a time; `shown_as` replaces its type.

    The evidence of a turn is its whole text.
    """
    return Hit(
        **memory_fields(memory, shown_as, as_of),
        score=score,
        scores=scores,
        contributions=None if contributions is None else dict(contributions),
    )


def memory_fields(memory: Memory, shown_as: MemoryType | None = None, as_of: datetime | None = None) -> dict[str, Any]:
    """Return the fields that hits and lists share."""
    whole = Evidence(turn_id=memory.turn_id, start=0, end=len(memory.text)) if memory.turn_id else None
    return {
        "memory_id": memory.memory_id,
        "turn_id": memory.turn_id,
        "conversation_id": memory.conversation_id,
        "scope": memory.scope,
        "type": shown_as or memory.type,
        "mode": memory.mode,
        "mode_source": memory.mode_source,
        "role": memory.role,
        "speaker": memory.speaker,
        "text": memory.text,
        "occurred_at": iso(memory.occurred_at),
        "accepted_at": iso(memory.accepted_at),
        "edited_since": as_of is not None and memory.version > 1 and memory.latest_at > as_of,
        "evidence": memory.evidence or ((whole,) if whole else ()),
        "version": memory.version,
        "embedding_status": memory.embedding.status,
        "private": memory.visibility.private,
        "metadata": memory.metadata,
    }


def warn_degraded(reasons: Iterable[tuple[str, str]], *, cross_mode: bool) -> list[SearchWarning]:
    """Return a warning if vectors are missing, from pairs of mode and reason."""
    messages = dict.fromkeys(f"{mode}: {reason}" if cross_mode else reason for mode, reason in reasons)
    return [("degraded", "; ".join(messages))] if messages else []


def warn_cross_mode(modes: Sequence[str], method: FusionMethod) -> SearchWarning:
    """Return the warning that several vector spaces were searched, and how."""
    how = {
        "rank_fusion": "each was searched with its own embedder, and their ranks are fused",
        "lexical_merge": "they are ranked by words, entities, recency, importance and topics, without embedders",
    }
    return "cross_mode", f"cosines of {', '.join(modes)} can't be compared: {how.get(method, method)}"


def warn_other_modes(counts: Mapping[str, int]) -> list[SearchWarning]:
    """Return a warning if the scope has memories in modes that were not searched, with their counts."""
    modes = ", ".join(f"{mode} ({count})" for mode, count in counts.items())
    return [("other_modes", f"these modes have memories here and were not searched: {modes}")] if modes else []


MAX_SHOWN_PASSAGES = 3

PartScores = Mapping[int, float]
"""The scores of passages by their number in the text."""


def part_scores(nearest_of: Sequence[Nearest], memory_ids: Sequence[str]) -> Mapping[str, PartScores]:
    """Return the scores of the passages of these memories; empty for a memory that was not compared."""
    wanted = frozenset(memory_ids)
    scores: dict[str, dict[int, float]] = {}
    for nearest in nearest_of:
        if nearest.passages is None:
            continue
        name_of = {
            row: memory_id
            for memory_id, row in zip(nearest.memory_ids, nearest.rows.tolist(), strict=True)
            if memory_id in wanted
        }
        passages = nearest.passages
        for row in np.flatnonzero(np.isin(passages.rows, list(name_of))).tolist():
            by_part = scores.setdefault(name_of[int(passages.rows[row])], {})
            part = int(passages.parts[row])
            by_part[part] = max(by_part.get(part, -1.0), float(passages.scores[row]))
    return scores


def passage_coverage(postings: Sequence[Postings], number: int, passages: int, documents: int) -> FloatArray:
    """Return the share of the question that each passage of a text covers, terms weighted by idf; shape (passages,)."""
    covered = np.zeros(passages)
    weights = [idf(len(term.numbers), documents) for term in postings]
    for term, weight in zip(postings, weights, strict=True):
        row = int(np.searchsorted(term.numbers, number))
        if term.passages is not None and row < len(term.numbers) and term.numbers[row] == number:
            covered += weight * ((int(term.passages[row]) >> np.arange(passages)) & 1)
    return covered / (sum(weights) or 1.0)


def best_passages(
    spans: Sequence[Span], covered: FloatArray, cosines: PartScores, maxsims: PartScores
) -> tuple[Passage, ...]:
    """Return the best passages, best first, ties in the order of the text.

    The score is the mean of the cosine, the late interaction score and the share of the question's words, each in 0..1.
    Late interaction reads only the nearest passages: the others count as the worst of these.
    """
    unread = min(maxsims.values(), default=0.0)
    # The texts of a turn's resources are compared as a further passage, which has no offset.
    parts = range(len(spans))
    kinds: list[Sequence[float]] = [covered.tolist()]
    if cosines:
        kinds.append([cosines.get(part, 0.0) for part in parts])
    if maxsims:
        kinds.append([maxsims.get(part, unread) for part in parts])
    scores = [sum(min(max(score, 0.0), 1.0) for score in of_part) / len(kinds) for of_part in zip(*kinds, strict=True)]
    best = sorted(parts, key=lambda part: -scores[part])[:MAX_SHOWN_PASSAGES]
    return tuple(
        Passage(start=spans[part].start, end=spans[part].end, score=round(scores[part], SCORE_DECIMALS))
        for part in best
    )
