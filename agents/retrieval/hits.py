"""Rank the memories of a search and return the best as hits. Awaits nothing: an answer is a consistent snapshot."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from modestream_client.hits import Hit, ItemInside, Passage

from agents.ports.clock import Clock
from agents.ports.indexes import LexicalIndex
from agents.ports.stores import Memories
from agents.rules.answer.hits import (
    MAX_ITEMS_PER_HIT,
    TermCoverage,
    best_passages,
    hit_of,
    match_items,
    part_scores,
    passage_coverage,
    rank_evidence,
)
from agents.rules.index.columns import DAY_MS, HALF_LIFE_DAYS, Mask, recency
from agents.rules.index.memory_columns import MemoryColumns, filtered_reader
from agents.rules.memory.resources import is_part, with_quotes, with_turn_metadata
from agents.rules.query.plans import SearchPlan, search_mask
from agents.rules.ranking.features import LinearModel, PreparedFeatures, RankingWeights, prepare_features
from agents.rules.ranking.memory_features import QueryFeatures, lexical_fields
from agents.rules.ranking.rank_fusion import (
    MAX_TOPIC_CANDIDATES,
    FusionMethod,
    ModeSearchResult,
    fuse_vector_scores,
    topic_share,
)
from agents.rules.ranking.ranking import MAX_RERANKED, Explanation, Ranking, rank_memories
from agents.rules.text.passages import lexical_text, memory_passages
from agents.rules.text.tokenizer import content_terms
from schemas.scopes import PROJECT_FIELD
from schemas.state.memories import Memory, ReadMemory

# Lexical features of the memories of one search, computed while the question is embedded.
#
# A write to the boundary makes them outdated: they are computed again, so that an answer is a consistent snapshot.


class LexicalFeatures:
    """All features of one search except vector scores."""

    def __init__(self, words: LexicalIndex, clock: Clock, search: SearchPlan, model: LinearModel | None = None) -> None:
        """`model` is the one by which memories with vectors will be ranked; None if nothing is to be prepared."""
        self._model = model
        self.prepared: PreparedFeatures | None = None
        """Lexical features for ranking."""
        self._words = words
        self._clock = clock
        self._search = search
        self._cached: tuple[MemoryColumns, int, QueryFeatures] | None = None
        self.include_superseded = search.request.include_superseded

    def memory_columns(self) -> MemoryColumns:
        return self._words.memory_columns(self._search.where.boundary)

    def filtered_reader(self, read: ReadMemory) -> ReadMemory:
        """Return a reader of the memories that the search's filters admit."""
        return filtered_reader(read, self._words.memory_columns, self._search.where)

    def prepare(self) -> None:
        """Compute the lexical features for ranking, if few memories match; otherwise vectors select which to rank."""
        features = self.now()
        if self._model is None:
            return
        numbers = np.flatnonzero(search_mask(self._search, self.memory_columns()))
        if len(numbers) <= MAX_RERANKED:
            self.prepared = prepare_features(features, numbers, self._model)

    def now(self) -> QueryFeatures:
        """Return the current features; cached until the next write to the boundary."""
        memory_columns = self.memory_columns()
        if self._cached is not None and self._cached[:2] == (memory_columns, memory_columns.changes):
            return self._cached[2]
        boundary = self._search.where.boundary
        columns, question, derived = memory_columns.columns, self._search.question, memory_columns.derived()
        postings = self._words.postings(boundary, question.terms)
        ages_ms = self._clock.now().timestamp() * 1000 - columns.occurred_ms.astype(np.float64)
        features = QueryFeatures(
            question=question,
            derived=derived,
            documents=memory_columns.documents,
            postings=postings,
            lexical=lexical_fields(derived, postings, memory_columns.documents),
            entities=self._words.entity_postings(boundary, question.entities),
            named=memory_columns.spoken_by(question.named),
            recency=recency(ages_ms, memory_columns.of_kind(lambda kind: HALF_LIFE_DAYS[kind.decay] * DAY_MS)),
            embedded=np.zeros(len(columns.live), np.bool_),
        )
        self._cached = memory_columns, memory_columns.changes, features
        return features


MAX_INSPECTED_ITEMS = 200
"""Items that are read for one answer, those of the best hits first, some 60 us each: most turns have none or one, a
turn with a long page has one for each chunk."""

MAX_SOURCES = 50
"""Sources of one distilled memory that are ranked by the question; the others follow in their stored order."""


class HitDetails:
    """Adds details to the hits of one question, in their order. Awaits nothing."""

    def __init__(self, read: ReadMemory, search: SearchPlan, coverage: Callable[[], TermCoverage]) -> None:
        """`read` returns the memories that the request's filters admit.

        `coverage` is called for the first hit that needs it.
        """
        self._read = read
        self._request, self._modes = search.request, search.modes
        self._make_coverage = coverage
        self._left = MAX_INSPECTED_ITEMS

    @cached_property
    def _coverage(self) -> TermCoverage:
        return self._make_coverage()

    def with_details(self, hit: Hit, memory: Memory, *, has_terms: bool) -> Hit:
        """Return a hit with its details; `has_terms`: the turn has a term of the question, so its items may match."""
        if memory.origin == "distilled":
            ids = dict.fromkeys(quote.memory_id for quote in memory.evidence if quote.memory_id is not None)
            texts = {source.memory_id: source.text for source in self._records(list(ids)[:MAX_SOURCES])}
            missing = set(list(ids)[:MAX_SOURCES]) - set(texts)
            existing = [quote for quote in memory.evidence if quote.memory_id not in missing]
            return hit.model_copy(update={"evidence": rank_evidence(existing, texts, self._coverage)})
        if memory.origin == "said" and memory.items and has_terms:
            read = memory.items[: self._left]
            self._left -= len(read)
            # An item in another register than its turn is found there.
            items = [item for item in self._records(read) if item.mode in self._modes]
            return hit.model_copy(update={"items": match_items(items, self._request, self._coverage)})
        return hit

    def _records(self, memory_ids: Iterable[str]) -> list[Memory]:
        """Return the existing records that searches find, in the order of the ids."""
        memories = (self._read(memory_id) for memory_id in memory_ids)
        return [memory for memory in memories if memory is not None and memory.visibility.searchable]


@dataclass(frozen=True, slots=True)
class RankLimits:
    """Settings of the pipelines for candidates: how many are read and ranked, and the minimum score of a hit."""

    top_k: int | None = None
    min_similarity: float = 0.0
    candidates: int = MAX_RERANKED
    min_score: float = 0.0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HitRanker:
    memories: Memories
    weights: RankingWeights
    limits: RankLimits

    def best(
        self,
        search: SearchPlan,
        words: LexicalFeatures,
        nearest: Sequence[ModeSearchResult],
        method: FusionMethod,
        *,
        bare: bool = False,
    ) -> tuple[list[Hit], int]:
        """Rank every memory that a search admits; return the best as hits, and the number of candidates.

        `bare`: hits without details.
        """
        memory_columns = words.memory_columns()
        features, admitted = collect_query_features(search, words, nearest, method)
        models, limits = self.weights.models, self.limits
        if limits.min_similarity and features.dense is not None:
            is_near = (features.dense >= limits.min_similarity) | ~features.embedded
            admitted = admitted & (is_near | (features.lexical["words"] > 0))
        ranking = rank_memories(
            features, admitted, models[features.variant], models["words"], words.prepared, limits.candidates
        )
        if method == "lexical_merge":
            topics = np.zeros(len(ranking.numbers))
            for row in ranking.best(MAX_TOPIC_CANDIDATES, memory_columns.id_of):
                memory = self.memories.get(memory_columns.id_of[int(ranking.numbers[row])])
                if memory is not None and memory.reading.topic:
                    topics[row] = topic_share(search.question.terms, content_terms(memory.reading.topic))
            ranking = ranking.with_topics(topics)
        if search.asked_project is not None:
            project = PROJECT_FIELD, search.asked_project
            in_project = memory_columns.of_kind(lambda kind: project in kind.scope)[ranking.numbers].astype(np.bool_)
            # Where one project has all candidates there is nothing to prefer, and the scores stay.
            if in_project.any() and not in_project.all():
                ranking = ranking.with_project(in_project)
        coverage = partial(TermCoverage.of, features, memory_columns, weigh_unknown=False)
        read = words.filtered_reader(self.memories.get)
        details = None if bare else HitDetails(read, search, coverage)
        hits = self._hits(search, memory_columns, features, ranking, details)
        return self._with_passages(hits, nearest, features, memory_columns), int(admitted.sum())

    def _with_passages(
        self,
        hits: Sequence[tuple[Hit, Memory]],
        nearest: Sequence[ModeSearchResult],
        features: QueryFeatures,
        memory_columns: MemoryColumns,
    ) -> list[Hit]:
        cut = {memory.memory_id: spans for _, memory in hits if (spans := memory_passages(memory))}
        # A text that was replaced since has no usable vectors: the index may still have those of the one before.
        embedded = [memory_id for memory_id in cut if features.embedded[memory_columns.number_of[memory_id]]]
        cosines = part_scores([scores for result in nearest for scores in result.read_passages], embedded)
        maxsims = part_scores([scores for result in nearest for scores in result.read_tokens], embedded)

        def passages(memory_id: str) -> tuple[Passage, ...]:
            number, spans = memory_columns.number_of[memory_id], cut[memory_id]
            covered = passage_coverage(features.postings, number, len(spans), features.documents)
            return best_passages(spans, covered, cosines.get(memory_id, {}), maxsims.get(memory_id, {}))

        return [
            hit.model_copy(update={"passages": passages(hit.memory_id)}) if hit.memory_id in cut else hit
            for hit, _ in hits
        ]

    def _hits(
        self,
        search: SearchPlan,
        memory_columns: MemoryColumns,
        features: QueryFeatures,
        ranking: Ranking,
        details: HitDetails | None,
    ) -> list[tuple[Hit, Memory]]:
        explanation = Explanation(features, ranking) if search.request.explain else None
        hits, lexical_scores = [], features.lexical["words"]
        for row in ranking.best(search.request.top_k, memory_columns.id_of):
            number = int(ranking.numbers[row])
            if ranking.score(row) < max(search.request.min_score, self.limits.min_score):
                break
            memory = self.memories.get(memory_columns.id_of[number])
            if memory is not None:
                why = (explanation.scores(row), explanation.contributions(row)) if explanation else (None, None)
                shown = with_turn_metadata(memory, self.memories.get)
                hit = hit_of(shown, ranking.score(row), *why, shown_as=search.shown_as, as_of=search.request.as_of)
                if details is not None:
                    hit = details.with_details(hit, memory, has_terms=bool(lexical_scores[number]))
                hits.append((hit, memory))
        return hits


def shown_in_turns(
    hits: Sequence[Hit], parts: Sequence[Hit], read: ReadMemory, *, include_superseded: bool
) -> list[Hit]:
    """Return hits with parts of files merged into their turns' hits, which score as their best part.

    The best part follows the turn's own text, after its place.

    A turn that is not a hit becomes one. A part whose turn is superseded remains a separate hit.
    """
    by_turn: dict[str, list[Hit]] = {}
    shown = {hit.memory_id: hit for hit in hits}
    for part in parts:
        memory_id = part.evidence[0].memory_id if part.turn_id and part.evidence else None
        turn = None if memory_id is None else read(memory_id)
        if memory_id is None or turn is None:
            continue
        if memory_id not in shown and turn.superseded_by is not None and not include_superseded:
            shown[part.memory_id] = part
        else:
            shown.setdefault(memory_id, hit_of(turn, 0.0))
            by_turn.setdefault(memory_id, []).append(part)
    for memory_id, of_turn in by_turn.items():
        hit = shown[memory_id]
        inside = {item.memory_id: item for item in hit.items}
        inside |= {
            part.memory_id: ItemInside(
                memory_id=part.memory_id, type=part.type, kind=None, text=part.text, score=part.score
            )
            for part in of_turn
        }
        items = sorted(inside.values(), key=lambda item: (-item.score, item.memory_id))[:MAX_ITEMS_PER_HIT]
        score = max(hit.score, *(part.score for part in of_turn))
        turn, best = read(memory_id), read(of_turn[0].memory_id)
        # As in a context: the text alone must show why it is a hit.
        text = lexical_text(with_quotes(turn, [best])) if turn and best and is_part(best) else hit.text
        shown[memory_id] = hit.model_copy(update={"items": tuple(items), "score": score, "text": text})
    return list(shown.values())


def collect_query_features(
    search: SearchPlan, words: LexicalFeatures, nearest: Sequence[ModeSearchResult], method: FusionMethod
) -> tuple[QueryFeatures, Mask]:
    """Return the features of every memory of the index, vector scores included, and which ones the search admits."""
    memory_columns = words.memory_columns()
    admitted = search_mask(search, memory_columns)
    features = words.now()
    scores = fuse_vector_scores(nearest, method, memory_columns, admitted, features.lexical["words"])
    return replace(
        features, embedded=scores.embedded, dense=scores.dense, whole=scores.whole, maxsim=scores.maxsim
    ), admitted
