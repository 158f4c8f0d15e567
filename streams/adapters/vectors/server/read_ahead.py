"""The reads of one question, sent before they are made: one request for each collection, all at once.

Guaranteed: every read returns what the index would return for it. A read that was not planned, or that the answer of
the server does not settle (scores that tie at the cut, memories that are no candidates), is sent when it is made.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from agents.ports.indexes import PlannedSearch, VectorReads
from agents.rules.text.passages import MAX_PASSAGES
from schemas.models.vectors import Matrix, MemoryFilter, Nearest, Scored, Vector
from schemas.state.modes import VectorSpace
from streams.adapters.vectors.server.stored_points import PASSAGE
from streams.adapters.vectors.server.transports import Hits, PointQuery
from streams.adapters.vectors.shared import qdrant_payload as payload
from streams.adapters.vectors.shared import vector_contract as contract

SendQueries = Callable[[VectorSpace, Sequence[PointQuery]], Awaitable[list[Hits]]]
"""Sends queries of one collection in one request."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A planned search with the server's hits of each of its questions, best first, or the error in their place."""

    search: PlannedSearch
    dense: Sequence[Hits]
    maxsim: Sequence[Hits]
    passages: Sequence[Hits]
    error: BaseException | None = None

    def question(self, space: VectorSpace, rows: Vector | Matrix, where: MemoryFilter) -> int | None:
        """Return the number of the question with these vectors; None if another search was planned."""
        if space != self.search.space or where != self.search.where:
            return None
        asked = enumerate(self.search.questions)
        return next((number for number, question in asked if question.pooled is rows or question.tokens is rows), None)


class ReadAhead:
    """Implements `VectorReads` from the answers to a question's planned searches."""

    def __init__(self, answered: Sequence[Answered], index: VectorReads) -> None:
        self._answered = answered
        self._index = index

    async def search(
        self,
        space: VectorSpace,
        vector: Vector,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
    ) -> Sequence[Scored]:
        """Return the nearest points; those of `memory_ids` are asked for."""
        answered, number = self._find(space, vector, where)
        if answered is None or memory_ids is not None or limit != answered.search.dense_limit:
            return await self._index.search(space, vector, where, limit, memory_ids)
        hits = answered.dense[number]
        if len(hits) > limit and hits[limit].score == hits[limit - 1].score:
            # The server left out points of the score of the last one: ties are not by id.
            return await self._index.search(space, vector, where, limit)
        return contract.score_wholes(hits[:limit])

    async def search_passages(
        self,
        space: VectorSpace,
        vector: Vector,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
    ) -> Nearest:
        """Return the texts with the nearest passages; those of `memory_ids` are asked for."""
        answered, number = self._find(space, vector, where)
        if answered is not None and answered.passages and memory_ids is None and limit == answered.search.passage_limit:
            hits = answered.passages[number]
            if contract.is_settled(hits, _text_limit(space, limit), limit):
                return contract.best_memories(hits, limit)
        return await self._index.search_passages(space, vector, where, limit, memory_ids)

    async def maxsim(
        self,
        space: VectorSpace,
        question: Matrix,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
        pooled: Vector | None = None,
    ) -> Nearest:
        """Return the best by late interaction; asks the server for those of `memory_ids` that were no candidates."""
        answered, number = self._find(space, question, where)
        if answered is None or not answered.maxsim or (memory_ids is None) != (answered.search.candidates is None):
            return await self._index.maxsim(space, question, where, limit, memory_ids, pooled)
        hits = answered.maxsim[number]
        if memory_ids is None:
            is_settled = contract.is_settled(hits, _text_limit(space, limit), limit)
            if limit != answered.search.maxsim_limit or not is_settled:
                return await self._index.maxsim(space, question, where, limit, None, pooled)
            return contract.best_memories(hits, limit)
        wanted, settled = frozenset(memory_ids), _settled(answered, number)
        missing = [memory_id for memory_id in contract.validate_ids(memory_ids) if memory_id not in settled]
        scored = [hit for hit in hits if hit.memory_id in wanted and hit.memory_id in settled]
        if missing:
            others = await self._index.maxsim(space, question, where, len(missing), missing, pooled)
            scored += contract.hits_of(others)
        return contract.best_memories(scored, limit)

    def _find(self, space: VectorSpace, rows: Vector | Matrix, where: MemoryFilter) -> tuple[Answered | None, int]:
        for answered in self._answered:
            if (number := answered.question(space, rows, where)) is not None:
                if answered.error is not None:
                    raise answered.error
                return answered, number
        return None, 0


def _settled(answered: Answered, number: int) -> frozenset[str]:
    """Return the memories whose score is known, or that have none."""
    hits, has_parts = answered.maxsim[number], answered.search.space.fingerprint.passages is not None
    scored = frozenset(hit.memory_id for hit in hits if hit.part is None)
    if len(hits) >= _candidate_limit(answered.search):
        return scored  # A collection of several shards takes candidates of each: not all scores came.
    limit, settled = answered.search.dense_limit, scored.union(answered.search.candidates or ())
    for nearest in answered.dense:
        # Of points that tie at the cut the server takes any.
        cut = nearest[limit].score if len(nearest) > limit else None
        near = {hit.memory_id for hit in nearest[:limit] if hit.score != cut}
        # One without a score may be cut: of its passages the server took none as candidates.
        settled |= near & scored if has_parts else near
    return settled


def _candidate_limit(search: PlannedSearch) -> int:
    return len(search.questions) * search.dense_limit + _candidate_points(search) + 1


def _candidate_points(search: PlannedSearch) -> int:
    return len(search.candidates or ()) * (1 if search.space.fingerprint.passages is None else MAX_PASSAGES + 1)


def _text_limit(space: VectorSpace, limit: int) -> int:
    """Return how many of the best texts are asked for, so that they nearly always have that many memories."""
    return (limit + 1) * (1 if space.fingerprint.passages is None else contract.WIDENING_FACTOR)


def planned_queries(search: PlannedSearch) -> list[PointQuery]:
    """Return the queries of a search: for each question by its pooled vector, then of passages, then by token vectors.

    One hit more than wanted says whether scores tie at the cut. Raises ValueError for vectors that the space does not
    take.
    """
    for question in search.questions:
        contract.check_vector(search.space, question.pooled)
        contract.check_rows(search.space, question.tokens)
    using, where = payload.pooled_name(search.space.fingerprint), search.where
    has_parts = search.space.fingerprint.passages is not None
    whole = PointQuery(using, None, where, search.dense_limit + 1, has_lengths=has_parts)
    dense = [replace(whole, rows=question.pooled) for question in search.questions]
    if has_parts and search.passage_limit is not None:
        limit = _text_limit(search.space, search.passage_limit)
        dense += [PointQuery(PASSAGE, question.pooled, where, limit, has_parts=True) for question in search.questions]
    if search.maxsim_limit is None:
        return dense
    late = PointQuery(payload.TOKENS, None, where, _text_limit(search.space, search.maxsim_limit), has_parts=has_parts)
    if search.candidates is None:
        return [*dense, *(replace(late, rows=question.tokens) for question in search.questions)]
    prefetch = [PointQuery(using, question.pooled, where, search.dense_limit) for question in search.questions]
    if search.candidates:
        limit = _candidate_points(search)
        prefetch.append(PointQuery(None, None, where, limit, search.candidates, has_parts=has_parts))
    late = replace(late, limit=_candidate_limit(search), prefetch=prefetch)
    return [*dense, *(replace(late, rows=question.tokens) for question in search.questions)]


async def read_ahead(searches: Sequence[PlannedSearch], send: SendQueries, index: VectorReads) -> ReadAhead:
    """Send all queries of a question, those of one collection in one request, and wait for all answers."""
    by_space: dict[VectorSpace, list[PlannedSearch]] = {}
    for search in searches:
        by_space.setdefault(search.space, []).append(search)
    parts = await asyncio.gather(*(_answered(space, some, send) for space, some in by_space.items()))
    return ReadAhead([answered for part in parts for answered in part], index)


async def _answered(space: VectorSpace, searches: Sequence[PlannedSearch], send: SendQueries) -> list[Answered]:
    """Return the answers of one collection; an error is raised by the reads of its searches alone."""
    try:
        queries = {number: planned_queries(search) for number, search in enumerate(searches)}
        hits = iter(await send(space, [query for some in queries.values() for query in some]))
    except Exception as error:
        return [Answered(search, (), (), (), error) for search in searches]
    answers: list[Answered] = []
    for number, search in enumerate(searches):
        # In the order of `planned_queries`: whole texts, passages, late interaction.
        of_search = [next(hits) for _ in queries[number]]
        count = len(search.questions)
        late = len(of_search) - (0 if search.maxsim_limit is None else count)
        dense, passages, maxsim = of_search[:count], of_search[count:late], of_search[late:]
        answers.append(
            Answered(
                search,
                dense=list(map(contract.by_direction, dense)),
                maxsim=list(map(contract.by_score, maxsim)),
                passages=list(map(contract.by_cosine, passages)),
            )
        )
    return answers
