"""Find the memories nearest to a question, one search per mode, each with its own model in its own space.

A mode without visible memories costs nothing: its model is not loaded and the question not embedded. If the vectors of
one mode can't be searched, no mode is: ranks of a part could not be fused. Lexical features are computed while the
models, in processes of their own, embed the question. If a mode has a model for each language and memories of both,
both models embed the question: every memory is compared by the model that made its vector.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from agents.modes.vector_spaces import VectorSpaces
from agents.ports.indexes import PlannedSearch, VectorIndex, VectorReads
from agents.ports.models import Embedder
from agents.retrieval.hits import LexicalFeatures
from agents.rules.index.columns import MISSING, Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.query.plans import ModeSearch, SearchPlan
from agents.rules.ranking.late_interaction import select_candidates, weight_query_tokens
from agents.rules.ranking.rank_fusion import (
    CROSS_LINGUAL_BIAS,
    ModeSearchResult,
    is_worth_asking,
    merge_cross_lingual,
    other_language_mask,
    split_by_language,
)
from schemas.failures import ModelMissing, Unavailable
from schemas.models.vectors import Encoded, Nearest, Scored
from schemas.state.modes import VectorSpace

EncoderKey = tuple[str, str | None, bool]
"""The settings that determine a question's vector: embedder, query prefix, `cross_lingual`."""

EncodingResult = Encoded | ModelMissing | Unavailable
"""A question's vectors, or the reason for their absence."""


@dataclass(frozen=True, slots=True)
class QueryEncoder:
    """A model that embeds a question; `cross_lingual`: for memories in other languages."""

    model: Embedder
    embedder: str
    query_prefix: str | None
    cross_lingual: bool = False

    @property
    def key(self) -> EncoderKey:
        """The key under which modes share an encoding."""
        return self.embedder, self.query_prefix, self.cross_lingual


async def encode_query(
    encoders: Iterable[QueryEncoder], text: str, meanwhile: Callable[[], object], boundary: str = ""
) -> Mapping[EncoderKey, EncodingResult]:
    """Embed a question once by every model; runs `meanwhile` while the models work."""
    models = {encoder.key: encoder.model for encoder in encoders}
    tasks = [asyncio.ensure_future(_encode(model, text, boundary)) for model in models.values()]
    # Let the tasks run until they wait for the models.
    await asyncio.sleep(0)
    meanwhile()
    encodings = [await tasks[0]] if len(tasks) == 1 else await asyncio.gather(*tasks)
    return dict(zip(models, encodings, strict=True))


def usable_encodings(
    encoders: Sequence[QueryEncoder], questions: Mapping[EncoderKey, EncodingResult]
) -> Mapping[bool, Encoded]:
    """Return a mode's encodings by `cross_lingual`. Raises the failure of its first encoder; ignores others."""
    by_language = {encoder.cross_lingual: questions[encoder.key] for encoder in encoders}
    first = questions[encoders[0].key]
    if not isinstance(first, Encoded):
        raise first
    return {cross_lingual: encoded for cross_lingual, encoded in by_language.items() if isinstance(encoded, Encoded)}


async def _encode(model: Embedder, text: str, boundary: str) -> EncodingResult:
    try:
        return await model.query(text, boundary=boundary)
    except (ModelMissing, Unavailable) as failure:
        return failure


def weigh_tokens(question: EncodingResult, search: SearchPlan, words: LexicalFeatures) -> EncodingResult:
    """Scale the token vectors of a question by the weights of its tokens among these memories."""
    if not isinstance(question, Encoded):
        return question
    asked, features = search.question, words.now()
    frequencies = {term: len(where.numbers) for term, where in zip(asked.terms, features.postings, strict=True)}
    spans = np.zeros((len(question.tokens), 2), np.int32) if question.spans is None else question.spans
    tokens = weight_query_tokens(question.tokens, spans, asked.text, frequencies, features.documents)
    return replace(question, tokens=tokens)


GiveWay = Callable[[float], Awaitable[None]]
"""Lets other requests run; takes the seconds worked on a question so far."""


async def let_others_run(_worked_s: float) -> None:
    """Let others run for one pass of the event loop."""
    await asyncio.sleep(0)


DENSE_LIMIT = 200
"""Number of nearest vectors read from a small index. Each costs about 5 µs; 300 find no more."""

DENSE_CANDIDATE_LIMIT = 300
"""Nearest vectors as candidates of MaxSim: on LoCoMo and our chats as one user 200 lose 0.3 points of recall@10."""

MAXSIM_FULL_SCAN_LIMIT = 1000
"""Memories up to which late interaction scores all, each by its own score: where all but the best 300 got the 300th
score, recall@1 to @20 of LoCoMo was 0.1 to 0.2 points lower. Above it scores candidates: on conversations of 6,000
turns of one user that finds as much."""

MAX_GIVEN_IDS = 5000
"""Memories among which a filtered question is searched by their ids. Of 60,000 points the engine takes 12 ms for so
many, 49 for 20,000, and 14 for a search of all."""

FILTERED_SPARE = 75
"""Where filters admit more, so many of all are taken that this many more than are wanted would be admitted if filters
knew no topic: four standard deviations, as each costs time."""

MODES_AT_ONCE = 8
"""Modes searched without a pause (5 ms for small ones): a question over more modes gives way to other requests."""

_Result = TypeVar("_Result")
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class _PreparedSearch:
    """A mode's search before the index is queried, with space and query encoders if there are vectors."""

    nearest: ModeSearchResult
    space: VectorSpace | None = None
    encoders: Sequence[QueryEncoder] = ()
    filtered_share: float | None = None
    """How many of the mode's memories with a vector the filters admit, in 0..1; None without filters."""
    admitted: Sequence[str] | None = None
    """These memories, if they are few."""

    @property
    def many(self) -> bool:
        """True if there are too many vectors for a MaxSim over all."""
        return self.nearest.count > MAXSIM_FULL_SCAN_LIMIT

    @property
    def dense_limit(self) -> int:
        """How many of the nearest vectors are wanted."""
        return DENSE_CANDIDATE_LIMIT if self.many else DENSE_LIMIT


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VectorSearch:
    """Questions in, nearest memories by mode out.

    `top_k` nearest vectors are wanted, None for as many as find no more.
    """

    vectors: VectorIndex
    spaces: VectorSpaces
    give_way: GiveWay = let_others_run
    top_k: int | None = None

    async def nearest(self, search: SearchPlan, words: LexicalFeatures) -> list[ModeSearchResult]:
        """Return the nearest memories of each mode's search, in their order; there is at least one."""
        memory_columns = words.memory_columns()
        prepared: list[_PreparedSearch] = []
        async for part in self._paced(search.mode_searches):
            prepared += [self._prepare(mode_search, memory_columns, search) for mode_search in part]
        if any(mode_search.nearest.status == "unavailable" for mode_search in prepared):
            return [mode_search.nearest for mode_search in prepared]
        encoders = [reader for mode_search in prepared for reader in mode_search.encoders]
        encoded = await encode_query(encoders, search.question.text, words.prepare, search.request.scope.boundary)
        questions = {key: weigh_tokens(question, search, words) for key, question in encoded.items()}
        plans = [self._plan(mode_search, questions, search, words) for mode_search in prepared]
        reads = await self.vectors.read_ahead([plan for plan in plans if plan is not None])
        results: list[ModeSearchResult] = []
        async for some in self._paced(list(zip(prepared, plans, strict=True))):
            searches = [self._found(mode_search, plan, reads, questions, search, words) for mode_search, plan in some]
            results += await _gather(searches)
        return results

    async def _paced(self, modes: Sequence[_Item]) -> AsyncIterator[Sequence[_Item]]:
        """Yield `MODES_AT_ONCE` modes at a time, and give way between them."""
        for start in range(0, len(modes), MODES_AT_ONCE):
            began = time.perf_counter()
            yield modes[start : start + MODES_AT_ONCE]
            if start + MODES_AT_ONCE < len(modes):
                await self.give_way(time.perf_counter() - began)

    def _prepare(self, mode_search: ModeSearch, memory_columns: MemoryColumns, search: SearchPlan) -> _PreparedSearch:
        admitted = memory_columns.admitted(mode_search.where, include_superseded=search.request.include_superseded)
        if not admitted.any():
            return _PreparedSearch(ModeSearchResult(mode_search, "empty"))
        mode, boundary = mode_search.mode, search.request.scope.boundary
        served = mode if mode.former is None else self.spaces.serving(boundary, mode)
        if served is not mode:
            # By the embedder that serves the mode, if a memory has a vector of it.
            by_served = admitted & memory_columns.embedded(self.spaces.resolve(served)[1].fingerprint.digest)
            mode_search = replace(mode_search, mode=served) if by_served.any() else mode_search
        try:
            model, space = self.spaces.resolve(mode_search.mode)
        except ModelMissing as problem:
            has_vectors = (admitted & (memory_columns.columns.spaces != MISSING)).any()
            return _PreparedSearch(
                ModeSearchResult(mode_search, "unavailable" if has_vectors else "not_indexed", missing=str(problem))
            )
        digest = space.fingerprint.digest
        embedded = admitted & memory_columns.embedded(digest)
        count = int(embedded.sum())
        if not count:
            return _PreparedSearch(ModeSearchResult(mode_search, "not_indexed", digest, missing="no vectors"))
        elsewhere = int((embedded & other_language_mask(memory_columns, foreign=search.question.foreign)).sum())
        nearest = ModeSearchResult(mode_search, "ok", digest, count)
        prepared = _PreparedSearch(nearest, space, self._encoders(nearest, model, search.question.text, elsewhere))
        if not mode_search.where.needs_columns:
            return prepared
        # The vector index knows neither filters nor when memories were accepted.
        unfiltered = memory_columns.admitted(
            replace(mode_search.where, filters=None, as_of_ms=None),
            include_superseded=search.request.include_superseded,
        )
        every = int((unfiltered & memory_columns.embedded(digest)).sum())
        if count == every:
            return prepared
        ids = _ids_at(embedded, memory_columns) if count <= MAX_GIVEN_IDS else None
        return replace(prepared, filtered_share=count / every, admitted=ids)

    def _encoders(self, nearest: ModeSearchResult, model: Embedder, text: str, elsewhere: int) -> list[QueryEncoder]:
        """Return the question's encoders; `elsewhere` counts the memories that its own model can't read."""
        mode = nearest.mode_search.mode
        encoder = QueryEncoder(model, mode.embedder, mode.query_prefix)
        other = self.spaces.cross_lingual(mode, text) if is_worth_asking(elsewhere, nearest.count) else None
        if other is None:
            return [encoder]
        crossing = replace(encoder, model=other, cross_lingual=True)
        return [crossing] if elsewhere == nearest.count else [encoder, crossing]

    async def _found(
        self,
        prepared: _PreparedSearch,
        plan: PlannedSearch | None,
        reads: VectorReads,
        questions: Mapping[EncoderKey, EncodingResult],
        search: SearchPlan,
        words: LexicalFeatures,
    ) -> ModeSearchResult:
        if prepared.space is None:
            return prepared.nearest
        columns, foreign = words.memory_columns(), search.question.foreign
        bias = CROSS_LINGUAL_BIAS[foreign]

        def merged(by_language: Mapping[bool, Sequence[Scored]], offset: float, limit: int) -> Sequence[Scored]:
            return (
                merge_cross_lingual(by_language, columns, foreign=foreign, bias=offset, limit=limit)
                if by_language
                else ()
            )

        try:
            asked = usable_encodings(prepared.encoders, questions)
            calls = [self._dense(prepared, prepared.space, reads, question, words) for question in asked.values()]
            nearest = merged(
                dict(zip(asked, await _gather(calls), strict=True)), bias.dense, self.top_k or prepared.dense_limit
            )
            candidates = self._candidates_of(prepared, plan, search, words, nearest)
            limit = MAXSIM_FULL_SCAN_LIMIT if candidates is None else len(candidates)
            passages = await self._passages(prepared, prepared.space, reads, asked, candidates, limit)
            groups = (
                {} if candidates is None or len(asked) == 1 else split_by_language(candidates, columns, foreign=foreign)
            )
            among = {crosses: groups.get(crosses, candidates) for crosses in asked}
            maxsim = await self._maxsim(prepared, prepared.space, reads, asked, among, limit)
        except (ModelMissing, Unavailable) as failure:
            return replace(prepared.nearest, status="unavailable", missing=str(failure))
        return replace(
            prepared.nearest,
            found=nearest,
            maxsim=merged(maxsim, bias.maxsim, limit),
            passages=merged(passages, bias.dense, limit),
            read_passages=tuple(passages.values()),
            read_tokens=tuple(maxsim.values()),
        )

    def _plan(
        self,
        prepared: _PreparedSearch,
        questions: Mapping[EncoderKey, EncodingResult],
        search: SearchPlan,
        words: LexicalFeatures,
    ) -> PlannedSearch | None:
        """Return the reads of a mode; None if the question has no vectors, or filters.

        Candidates of late interaction are known ahead by words alone. Where a read is a round trip, the server adds the
        nearest to them, without their neighbours: that costs no recall (`docs/decisions/0028-one-query-a-question.md`).
        """
        if prepared.space is None or prepared.filtered_share is not None:
            return None
        try:
            asked = tuple(usable_encodings(prepared.encoders, questions).values())
        except (ModelMissing, Unavailable):
            return None
        plan = PlannedSearch(
            prepared.space, asked, prepared.nearest.mode_search.where, self.top_k or prepared.dense_limit
        )
        if not prepared.space.fingerprint.token_dim or (prepared.many and not self.vectors.is_remote):
            return plan
        return replace(
            plan,
            maxsim_limit=MAXSIM_FULL_SCAN_LIMIT,
            passage_limit=None if prepared.space.fingerprint.passages is None else MAXSIM_FULL_SCAN_LIMIT,
            candidates=_candidates((), prepared, search, words) if prepared.many else None,
        )

    def _candidates_of(
        self,
        prepared: _PreparedSearch,
        plan: PlannedSearch | None,
        search: SearchPlan,
        words: LexicalFeatures,
        nearest: Sequence[Scored],
    ) -> Sequence[str] | None:
        """Return the memories that are compared passage by passage and token by token; None for all of few."""
        if not prepared.many:
            return prepared.admitted
        near = Nearest.of(nearest).memory_ids
        by_words = None if plan is None else plan.candidates
        if by_words is None:
            return _candidates(near, prepared, search, words)
        # Those that were sent ahead, and those that the server added to them.
        numbers = words.memory_columns().number_of
        return list(dict.fromkeys([*by_words, *(memory_id for memory_id in near if memory_id in numbers)]))

    async def _dense(
        self,
        prepared: _PreparedSearch,
        space: VectorSpace,
        reads: VectorReads,
        question: Encoded,
        words: LexicalFeatures,
    ) -> Sequence[Scored]:
        """Return the nearest memories by the pooled vector of those that filters admit."""
        where, limit = prepared.nearest.mode_search.where, self.top_k or prepared.dense_limit
        if prepared.filtered_share is None or prepared.admitted is not None:
            return await reads.search(space, question.pooled, where, limit, prepared.admitted)
        wide = math.ceil((limit + FILTERED_SPARE) / prepared.filtered_share)
        nearest = Nearest.of(await reads.search(space, question.pooled, where, wide))
        columns = words.memory_columns()
        is_admitted = columns.admitted(where, include_superseded=words.include_superseded)
        mask = np.append(is_admitted, False)[columns.derived().numbers_of(nearest)]
        # As many as a small index reads do: a search by ids costs more than the rest of the question.
        if mask.sum() >= min(limit, DENSE_LIMIT) or len(nearest) < wide:
            return Nearest(nearest.table, nearest.scores[mask], nearest.rows[mask])[:limit]
        # The filters admit what is about something else.
        return await reads.search(space, question.pooled, where, limit, _ids_at(is_admitted, columns))

    async def _passages(
        self,
        prepared: _PreparedSearch,
        space: VectorSpace,
        reads: VectorReads,
        asked: Mapping[bool, Encoded],
        among: Sequence[str] | None,
        limit: int,
    ) -> Mapping[bool, Nearest]:
        """Return the cut texts with the nearest passages by each model's question, of all memories or of some."""
        if space.fingerprint.passages is None:
            return {}
        where = prepared.nearest.mode_search.where
        calls = [reads.search_passages(space, question.pooled, where, limit, among) for question in asked.values()]
        return dict(zip(asked, await _gather(calls), strict=True))

    async def _maxsim(
        self,
        prepared: _PreparedSearch,
        space: VectorSpace,
        reads: VectorReads,
        asked: Mapping[bool, Encoded],
        among: Mapping[bool, Sequence[str] | None],
        limit: int,
    ) -> Mapping[bool, Nearest]:
        """Return the best by late interaction with each model's question, of all memories or of some."""
        if not space.fingerprint.token_dim:
            return {}
        where = prepared.nearest.mode_search.where
        calls = [
            reads.maxsim(space, question.tokens, where, limit, among[crosses], question.pooled)
            for crosses, question in asked.items()
        ]
        return dict(zip(asked, await _gather(calls), strict=True))


def _ids_at(mask: Mask, columns: MemoryColumns) -> list[str]:
    return list(map(columns.id_of.__getitem__, np.flatnonzero(mask).tolist()))


def _candidates(
    near: Sequence[str], prepared: _PreparedSearch, search: SearchPlan, words: LexicalFeatures
) -> list[str]:
    """Return the candidates of late interaction, which include the neighbours of `near`."""
    columns = words.memory_columns()
    admitted = columns.admitted(
        prepared.nearest.mode_search.where, include_superseded=search.request.include_superseded
    )
    return select_candidates(near, words.now().lexical, columns, admitted)


async def _gather(calls: Sequence[Coroutine[Any, Any, _Result]]) -> list[_Result]:
    # Nearly always there is one call: no task for it.
    return [await calls[0]] if len(calls) == 1 else list(await asyncio.gather(*calls))
