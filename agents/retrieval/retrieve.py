"""Answer retrieve requests: hybrid search over vectors and words, within one boundary.

Every memory that the selector admits in the searched modes is ranked; a memory without a vector is found by its words
and its neighbours. Without vectors the answer is lexical, with a warning that says why. Several vector spaces are fused
by rank, or merged without any vectors; cosines are compared within one space only. The same question over the same
memories has the same answer. Turns and items are ranked separately, so that neither affects the order of the other; if
both are requested, they are merged by score.
"""

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from modestream_client.hits import Hit
from modestream_client.vocabulary import Strategy

from agents.modes.vector_spaces import VectorSpaces
from agents.ports.clock import Clock
from agents.ports.lexical_index import LexicalIndex
from agents.ports.pipelines import ActivePipelines
from agents.ports.run_timer import step
from agents.ports.stores import Memories, Modes
from agents.ports.vector_index import VectorIndex
from agents.retrieval.drill_down import DrillDown, DrillDownLevel
from agents.retrieval.hits import HitRanker
from agents.retrieval.lexical_features import LexicalFeatures
from agents.retrieval.vector_search import GiveWay, VectorSearch, let_others_run
from agents.rules.answer.drill_down import Depth, Layers
from agents.rules.answer.hits import SearchWarning, warn_cross_mode, warn_degraded, warn_other_modes
from agents.rules.query.plans import SearchPlan, count_other_modes, plan_searches, where_of
from agents.rules.ranking.rank_fusion import FusionMethod, ModeSearchResult, choose_fusion_method, strategy_of
from agents.rules.ranking.weights import RankingWeights
from schemas.messages.retrieval import RetrieveRequest, RetrieveResult

Warnings = list[SearchWarning]
"""Codes and messages."""


class _Found(NamedTuple):
    search: SearchPlan
    words: LexicalFeatures
    nearest: Sequence[ModeSearchResult]

    @property
    def method(self) -> FusionMethod:
        return choose_fusion_method([result.status for result in self.nearest])

    @property
    def strategy(self) -> Strategy:
        return strategy_of([result.status for result in self.nearest])

    def among(self, memory_ids: frozenset[str] | None) -> "_Found":
        return self if memory_ids is None else self._replace(search=self.search.restricted_to(memory_ids))


class Retrieve:
    """Retrieve requests in, results out. Writes nothing."""

    def __init__(
        self,
        words: LexicalIndex,
        memories: Memories,
        vectors: VectorIndex,
        modes: Modes,
        spaces: VectorSpaces,
        clock: Clock,
        weights: RankingWeights,
        layers: DrillDown | None = None,
        elapsed: Callable[[], float] = time.perf_counter,
        give_way: GiveWay = let_others_run,
    ) -> None:
        """`elapsed` counts seconds; without `layers` a search has no layers above the items.

        `give_way` is awaited between parts of a long search.
        """
        self._words = words
        self._memories = memories
        self._modes = modes
        self._clock = clock
        self._vectors = VectorSearch(vectors, spaces, give_way, elapsed)
        self._hits = HitRanker(memories, weights)
        self._model = weights.models["tokens"]
        self._layers = layers
        self._elapsed = elapsed

    async def answer(self, request: RetrieveRequest, decided: Depth | None = None) -> tuple[RetrieveResult, Warnings]:
        """Return result and warnings; `decided` is the layer that suffices where rules are not to say.

        Raises Rejected for an undeclared mode, and if there is no mode at all.
        """
        return await self._answer(request, bare=False, decided=decided)

    async def layers(self, request: RetrieveRequest) -> tuple[Layers, Warnings]:
        """Return the layers above the items that match the question. Raises Rejected as `answer` does."""
        search = self._searches(request)[0]
        words = LexicalFeatures(self._words, self._clock, replace(search, where=where_of(request)))
        if self._layers is None:
            return Layers(request.query, None, ()), []
        return self._layers.layers(request.query, where_of(request), words.now(), words.memory_columns()), []

    async def turns(self, request: RetrieveRequest) -> tuple[RetrieveResult, Warnings]:
        """Return the same without details of hits."""
        return await self._answer(request, bare=True)

    async def _answer(
        self, request: RetrieveRequest, *, bare: bool, decided: Depth | None = None
    ) -> tuple[RetrieveResult, Warnings]:
        started = self._elapsed()
        parts: list[_Found] = []
        with step("retrieve.recall"):
            for search in self._searches(request, turns_alone=bare):
                words = LexicalFeatures(self._words, self._clock, search, self._model)
                parts.append(_Found(search, words, await self._vectors.nearest(search, words)))
        # The index may have changed during the search: from here on all is read again, and nothing awaited.
        # The topmost layer that is sufficient and has a visible memory; otherwise the items.
        for level in self._levels(parts, request, decided):
            with step("retrieve.rank"):
                hits, candidates = self._best([part.among(level.within) for part in parts], request.top_k, bare=bare)
            if hits or level.within is None:
                break
        warnings = self._warnings(parts)
        took_ms = round(1000 * (self._elapsed() - started), 2)
        result = RetrieveResult(
            hits=hits,
            modes=parts[0].search.modes,
            strategy=next((part.strategy for part in parts if part.strategy != "hybrid"), "hybrid"),
            intention=level.intention,
            categories=level.categories,
            diagnostics={"candidates": candidates, "took_ms": took_ms, "method": parts[0].method, "depth": level.depth},
        )
        return result, warnings

    def _searches(self, request: RetrieveRequest, *, turns_alone: bool = False) -> list[SearchPlan]:
        declared = self._modes.get(request.scope.boundary)

        def mode_of(memory_id: str) -> str | None:
            memory = self._memories.get(memory_id)
            return None if memory is None else memory.mode

        return plan_searches(request, declared, self._words.memory_columns, mode_of, turns_alone=turns_alone)

    def _levels(
        self, parts: Sequence[_Found], request: RetrieveRequest, decided: Depth | None
    ) -> Iterable[DrillDownLevel]:
        if request.depth == "items" or self._layers is None:
            return [DrillDownLevel()]
        search, where = parts[0].search, where_of(request)
        turns = parts[0].words if search.where.boundary == where.boundary else None
        turns = turns or LexicalFeatures(self._words, self._clock, replace(search, where=where))
        return self._layers.levels(where, turns.now(), turns.memory_columns(), decided)

    def _best(self, parts: Iterable[_Found], top_k: int, *, bare: bool) -> tuple[list[Hit], int]:
        """Return the best hits of all parts by score, ties by id, and the number of candidates."""
        ranked = [self._hits.best(part.search, part.words, part.nearest, part.method, bare=bare) for part in parts]
        candidates = sum(count for _, count in ranked)
        if len(ranked) == 1:
            return ranked[0][0], candidates
        every = (hit for hits, _ in ranked for hit in hits)
        return heapq.nsmallest(top_k, every, key=lambda hit: (-hit.score, hit.memory_id)), candidates

    def _warnings(self, parts: Sequence[_Found]) -> Warnings:
        first, several = parts[0], len(parts[0].nearest) > 1
        results = [result for part in parts for result in part.nearest]
        reasons = [(result.mode_search.mode.name, result.missing) for result in results if result.missing]
        warnings = [warn_cross_mode(first.search.modes, first.method)] if several else []
        warnings += warn_degraded(reasons, cross_mode=several)
        if first.search.request.mode is None:
            # A window's turns are left out.
            counts: Counter[str] = Counter()
            for search, words in ((part.search, part.words) for part in parts):
                if search.within is None:
                    columns, superseded = words.memory_columns(), search.request.include_superseded
                    counts.update(count_other_modes(columns, search.where, include_superseded=superseded))
            warnings += warn_other_modes(counts)
        return warnings


RECEIVE, RANK, RERANK = "retrieve.receive", "retrieve.rank", "retrieve.rerank"


class SearchWithCustomSteps:
    """Retrieve requests in, results out. Writes nothing."""

    def __init__(self, retrieve: Retrieve, pipelines: ActivePipelines) -> None:
        self._retrieve = retrieve
        self._pipelines = pipelines
        self.changes_query = pipelines.has_custom(RECEIVE)
        """True if custom steps may change the query of a request."""

    async def receive(self, request: RetrieveRequest) -> tuple[RetrieveRequest, Warnings]:
        """Return a request with the query that custom steps have left. Raises Rejected if one fails."""
        if not self.changes_query:
            return request, []
        query = await self._pipelines.run_custom(RECEIVE, {"query": request.query})
        warnings = [(warning.code, warning.message) for warning in query.warnings]
        return request.model_copy(update={"query": query.value}), warnings

    async def answer(self, received: RetrieveRequest, decided: Depth | None = None) -> tuple[RetrieveResult, Warnings]:
        """Return result and warnings of a request after `receive`, as `Retrieve.answer`."""
        result, warnings = await self._retrieve.answer(received, decided=decided)
        result, more = await self._after(RANK, received, result)
        return result, [*warnings, *more]

    async def layers(self, received: RetrieveRequest) -> tuple[Layers, Warnings]:
        """Return the layers that match a request after `receive`, as `Retrieve.layers`."""
        return await self._retrieve.layers(received)

    async def turns(self, request: RetrieveRequest) -> tuple[RetrieveResult, Warnings]:
        """Return the same without details of hits, of a request before `receive`."""
        received, warnings = await self.receive(request)
        result, search_warnings = await self._retrieve.turns(received)
        result, more = await self._after(RANK, received, result)
        return result, [*warnings, *search_warnings, *more]

    async def ordered(self, received: RetrieveRequest, result: RetrieveResult) -> tuple[RetrieveResult, Warnings]:
        """Return a result after the custom steps that follow, or replace, the language model's order."""
        return await self._after(RERANK, received, result)

    async def _after(
        self, step_id: str, request: RetrieveRequest, result: RetrieveResult
    ) -> tuple[RetrieveResult, Warnings]:
        if not self._pipelines.has_custom(step_id):
            return result, []
        custom = await self._pipelines.run_custom(step_id, {"query": request.query, "hits": result.hits})
        warnings = [(warning.code, warning.message) for warning in custom.warnings]
        return result.model_copy(update={"hits": custom.value[: request.top_k]}), warnings
