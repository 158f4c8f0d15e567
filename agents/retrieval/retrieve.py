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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from modestream_client.hits import Hit
from modestream_client.vocabulary import Strategy

from agents.modes.vector_spaces import VectorSpaces
from agents.ports.clock import Clock
from agents.ports.indexes import LexicalIndex, VectorIndex
from agents.ports.models import CrossEncoder, LanguageModel
from agents.ports.pipelines import ActivePipelines, State
from agents.ports.stores import Files, Memories, Modes
from agents.retrieval.drill_down import DrillDown, DrillDownLevel
from agents.retrieval.hits import HitRanker, LexicalFeatures, RankLimits, shown_in_turns
from agents.retrieval.vector_search import GiveWay, VectorSearch, let_others_run
from agents.rules.answer.drill_down import (
    MAX_REASON_CHARS,
    Depth,
    JudgedDepth,
    Layers,
    SufficiencyAnswer,
    build_sufficiency_prompt,
    read_depth,
)
from agents.rules.answer.hits import SearchWarning, warn_cross_mode, warn_degraded, warn_other_modes
from agents.rules.answer.reranking import (
    MAX_READ_HITS,
    READER_NAME,
    RankedHits,
    ReadHits,
    RerankAnswer,
    build_rerank_prompt,
    read_order,
    text_to_read,
)
from agents.rules.prompts.prompting import Template
from agents.rules.query.plans import SearchPlan, count_other_modes, plan_searches, where_of
from agents.rules.ranking.features import RankingWeights
from agents.rules.ranking.rank_fusion import FusionMethod, ModeSearchResult, choose_fusion_method, strategy_of
from agents.rules.text.non_english import is_non_english
from schemas.failures import ModelMissing, Unavailable
from schemas.messages.retrieval import RetrieveRequest, RetrieveResult
from schemas.models.language import AnswerT, ModelAnswer, Prompt, Unanswerable

# Steps of a search that ask a model: which layer suffices, and the order of the best hits. They write nothing.
#
# A request that asks a language model waits for a single call, and is answered as well without it. Texts are data in
# the prompt, never an instruction; a language model reads no private text. The cross-encoder runs on this machine, as
# the embedders do: it reads private hits as well.

RETRIEVE_ROLE = "retrieve"
"""The role of all steps of a search; a deployment selects their language model profile by it."""

NO_MODEL = "no language model is available, see LLM_PROFILES and the models of the health command"


class NoModelAnswer(Exception):
    """The request is answered without the model; the message says why."""


@dataclass(frozen=True, slots=True)
class RequestModel:
    """The language model of one step; `timeout_s` is for the caller of `ask`."""

    model: LanguageModel
    step: str
    timeout_s: float

    def is_available(self) -> bool:
        return self.model.available(self.step, RETRIEVE_ROLE)

    def require(self) -> None:
        """Raise NoModelAnswer if the model can't be asked now."""
        if not self.is_available():
            raise NoModelAnswer(NO_MODEL)

    async def ask(self, prompt: Prompt, answer: type[AnswerT]) -> ModelAnswer[AnswerT]:
        """Return the answer. Raises NoModelAnswer."""
        self.require()
        try:
            return await self.model.ask(self.step, RETRIEVE_ROLE, prompt, answer)
        except (Unavailable, Unanswerable) as problem:
            raise NoModelAnswer(str(problem)) from problem


SUFFICIENCY_STEP = "retrieve.sufficiency"
"""The name by which a deployment selects the language model profile."""


class JudgeLayers:
    """Layers in, the depth of a search out."""

    def __init__(self, model: LanguageModel, template: Template, timeout_s: float, *, by_default: bool) -> None:
        """`by_default`: also for requests that say nothing about it."""
        self.model = RequestModel(model, SUFFICIENCY_STEP, timeout_s)
        self._template = template
        self._by_default = by_default

    def is_asked(self, request: RetrieveRequest) -> bool:
        asks = self._by_default if request.sufficiency is None else request.sufficiency == "model"
        return asks and request.depth == "auto"

    async def judge(self, layers: Layers) -> JudgedDepth:
        """Return the depth that suffices. Raises NoModelAnswer."""
        if layers.is_private:
            raise NoModelAnswer("the layers have private memories, which no language model reads")
        prompt = build_sufficiency_prompt(self._template, layers)
        answered = await self.model.ask(prompt, SufficiencyAnswer)
        depth = read_depth(answered.answer, layers)
        if depth is None:
            raise NoModelAnswer("the language model named a layer that has nothing to show")
        return JudgedDepth(depth, answered.answer.reason[:MAX_REASON_CHARS], answered.profile, layers)


RERANK_STEP = "retrieve.rerank"
"""The name by which a deployment selects the language model profile."""


class Rerank:
    """Hits in, their order out."""

    def __init__(
        self, model: LanguageModel, template: Template, candidates: int, timeout_s: float, *, by_default: bool
    ) -> None:
        """Show the model at most `candidates` hits; `by_default`: also for requests that say nothing about it."""
        self.timeout_s = timeout_s
        self._model = RequestModel(model, RERANK_STEP, timeout_s)
        self._template = template
        self._candidates = candidates
        self._by_default = by_default

    def is_asked(self, request: RetrieveRequest) -> bool:
        """True if the best hits of this request are to be ordered."""
        return self._by_default if request.rerank is None else request.rerank is True

    def is_available(self) -> bool:
        return self._model.is_available()

    def widened(self, request: RetrieveRequest) -> RetrieveRequest:
        """Return the request with as many hits as the model is shown, or more."""
        return request.model_copy(update={"top_k": max(request.top_k, self._candidates)})

    def shown(self, hits: Sequence[Hit]) -> list[Hit]:
        """Return the hits that the model may read."""
        return [hit for hit in hits[: self._candidates] if not hit.private]

    async def order(self, request: RetrieveRequest, hits: Sequence[Hit]) -> RankedHits:
        """Return the order of the best hits; at least two must be `shown`. Raises NoModelAnswer."""
        shown = self.shown(hits)
        answered = await self._model.ask(build_rerank_prompt(self._template, request.query, shown), RerankAnswer)
        ranked = read_order(answered.answer, shown, answered.profile)
        if not ranked.order:
            raise NoModelAnswer("the language model found none of them helpful")
        return ranked


@dataclass(slots=True, eq=False, repr=False)
class LocalRerank:
    """Hits in, their order out.

    `timeout_s` is for the caller of `order`.
    """

    cross_encoder: CrossEncoder
    timeout_s: float

    def is_asked(self, request: RetrieveRequest) -> bool:
        return request.rerank == READER_NAME

    def is_available(self) -> bool:
        """True: only a call shows whether the model can be loaded."""
        return True

    def widened(self, request: RetrieveRequest) -> RetrieveRequest:
        """Return the request with as many hits as are read, or more, whatever their scores: they will change."""
        return request.model_copy(update={"top_k": max(request.top_k, MAX_READ_HITS), "min_score": 0.0})

    def shown(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        return hits[:MAX_READ_HITS]

    async def order(self, request: RetrieveRequest, hits: Sequence[Hit]) -> ReadHits:
        """Return the order of the best hits. Raises NoModelAnswer."""
        if is_non_english(request.query):
            raise NoModelAnswer("the question is not in English, the only language that the cross-encoder reads")
        read = self.shown(hits)
        texts = [text_to_read(hit) for hit in read]
        try:
            scores = await self.cross_encoder.scores(request.query, texts, boundary=request.scope.boundary)
        except (ModelMissing, Unavailable, RuntimeError) as problem:
            raise NoModelAnswer(str(problem)) from problem
        return ReadHits({hit.memory_id: score for hit, score in zip(read, scores, strict=True)})


RECEIVE, RECALL, ROUTE, RANK = "retrieve.receive", "retrieve.recall", "retrieve.route", "retrieve.rank"

RERANK = "retrieve.rerank"

Warnings = list[SearchWarning]
"""Codes and messages."""

NO_LIMITS = RankLimits()


def warnings_in(state: State) -> Warnings:
    return [(warning.code, warning.message) for warning in state.get("warnings", ())]


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

    def search_among(self, memory_ids: frozenset[str] | None) -> SearchPlan:
        return self.search if memory_ids is None else self.search.restricted_to(memory_ids)


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
        layers: DrillDown,
        pipelines: ActivePipelines,
        limits: RankLimits = NO_LIMITS,
        *,
        files: Files | None = None,
        give_way: GiveWay = let_others_run,
    ) -> None:
        """`give_way` is awaited between parts of a long search; without `files` none covers the text of files."""
        self._files = files
        self.pipelines = pipelines
        self._words = words
        self._memories = memories
        self._modes = modes
        self._clock = clock
        self._vectors = VectorSearch(vectors, spaces, give_way, limits.top_k)
        self._hits = HitRanker(memories, weights, limits)
        self._model = weights.models["tokens"]
        self._layers = layers

    @property
    def changes_query(self) -> bool:
        """True if custom steps may change the query of a request."""
        return self.pipelines.has_custom(RECEIVE)

    async def receive(self, request: RetrieveRequest) -> tuple[RetrieveRequest, Warnings]:
        """Return a request with the query that custom steps have left. Raises Rejected if one fails."""
        state: State = {"query": request.query, "request": request}
        await self.pipelines.run({RECEIVE: None}, state)
        return request.model_copy(update={"query": state["query"]}), warnings_in(state)

    async def answer(
        self, request: RetrieveRequest, decided: Depth | None = None, *, bare: bool = False
    ) -> tuple[RetrieveResult, Warnings]:
        """Return result and warnings of a request after `receive`.

        `decided` is the layer that suffices where rules are not to say; `bare` is without details of hits. Raises
        Rejected for an undeclared mode, and if there is no mode at all.
        """
        started = time.perf_counter()
        state: State = {"query": request.query, "request": request, "decided": decided, "bare": bare}
        route = self._route if request.depth == "auto" else None
        await self.pipelines.run({RECALL: self._recall, ROUTE: route, RANK: self._rank}, state)
        parts, level = state["candidates"], state["level"]
        took_ms = round(1000 * (time.perf_counter() - started), 2)
        diagnostics = {
            "candidates": state["count"], "took_ms": took_ms, "method": parts[0].method, "depth": level.depth
        }  # fmt: skip
        result = RetrieveResult(
            hits=state["hits"][: request.top_k],
            modes=parts[0].search.modes,
            strategy=next((part.strategy for part in parts if part.strategy != "hybrid"), "hybrid"),
            intention=level.intention,
            categories=level.categories,
            diagnostics=diagnostics,
        )
        return result, [*self._warnings(parts), *warnings_in(state)]

    async def ordered(self, request: RetrieveRequest, result: RetrieveResult) -> tuple[list[Hit], Warnings]:
        """Return the hits after the custom steps that follow or replace a model's order, without such an order."""
        state: State = {"query": request.query, "request": request, "hits": result.hits}
        await self.pipelines.run({RERANK: None}, state)
        return state["hits"][: request.top_k], warnings_in(state)

    async def turns(self, request: RetrieveRequest) -> tuple[RetrieveResult, Warnings]:
        """Return the same without details of hits, of a request before `receive`."""
        received, warnings = await self.receive(request) if self.changes_query else (request, [])
        result, more = await self.answer(received, bare=True)
        return result, [*warnings, *more]

    async def layers(self, request: RetrieveRequest) -> tuple[Layers, Warnings]:
        """Return the layers above the items that match the question. Raises Rejected as `answer` does."""
        search = self._searches(request)[0]
        words = LexicalFeatures(self._words, self._clock, replace(search, where=where_of(request)))
        return self._layers.layers(request.query, where_of(request), words.now(), words.memory_columns()), []

    async def _recall(self, state: State) -> State:
        parts: list[_Found] = []
        for search in self._searches(state["request"], turns_alone=state["bare"]):
            words = LexicalFeatures(self._words, self._clock, search, self._model)
            parts.append(_Found(search, words, await self._vectors.nearest(search, words)))
        # The index may have changed during the search: from here on all is read again, and nothing awaited.
        return {"candidates": parts}

    def _route(self, state: State) -> State:
        request, parts = state["request"], state["candidates"]
        search, where = parts[0].search, where_of(request)
        turns = parts[0].words if search.where.boundary == where.boundary else None
        turns = turns or LexicalFeatures(self._words, self._clock, replace(search, where=where))
        return {"layers": [*self._layers.levels(where, turns.now(), turns.memory_columns(), state["decided"])]}

    def _rank(self, state: State) -> State:
        """Return the hits of the topmost layer that is sufficient and has a visible memory; otherwise of the items."""
        for level in state.get("layers") or [DrillDownLevel()]:
            ranked: list[tuple[list[Hit], int]] = []
            for part in state["candidates"]:
                search = part.search_among(level.within)
                ranked.append(self._hits.best(search, part.words, part.nearest, part.method, bare=state["bare"]))
            if any(hits for hits, _ in ranked):
                break
        hits, count = ranked[0][0], sum(count for _, count in ranked)
        if len(ranked) > 1:
            # By score, ties by id.
            searches = [part.search for part in state["candidates"]]
            found = [(search.of_parts, part_hits) for search, (part_hits, _) in zip(searches, ranked, strict=True)]
            every = [hit for of_parts, part_hits in found for hit in part_hits if not of_parts]
            for of_parts, part_hits in found:
                if of_parts:
                    superseded = state["request"].include_superseded
                    every = shown_in_turns(every, part_hits, self._memories.get, include_superseded=superseded)
            hits = heapq.nsmallest(state["request"].top_k, every, key=lambda hit: (-hit.score, hit.memory_id))
        return {"hits": hits, "count": count, "level": level}

    def _searches(self, request: RetrieveRequest, *, turns_alone: bool = False) -> list[SearchPlan]:
        declared = self._modes.get(request.scope.boundary)
        has_files = self._files is not None and self._files.has_turns(request.scope.boundary)
        columns_of = self._words.memory_columns
        return plan_searches(request, declared, columns_of, turns_alone=turns_alone, has_files=has_files)

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
                if search.within is None and not search.of_parts:
                    columns, superseded = words.memory_columns(), search.request.include_superseded
                    counts.update(count_other_modes(columns, search.where, include_superseded=superseded))
            warnings += warn_other_modes(counts)
        return warnings
