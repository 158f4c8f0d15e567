"""The reads of one question, sent before they are made: one request for each collection, all at once.

Guaranteed: every read returns what the index would return for it. A read that was not planned, or that the answer of
the server does not settle (scores that tie at the cut, memories that are no candidates), is sent when it is made.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from agents.ports.vector_index import PlannedSearch, VectorReads
from agents.rules.text.passages import MAX_PASSAGES
from schemas.models.vectors import Matrix, MemoryFilter, Nearest, Scored, Vector
from schemas.state.modes import VectorSpace
from streams.adapters.vectors.server.point_queries import Hits, PointQuery
from streams.adapters.vectors.server.stored_points import PASSAGE
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
        return next((number for number, one in asked if one.pooled is rows or one.tokens is rows), None)


class ReadAhead:
    """Implements `VectorReads` from the answers to a question's planned searches."""

    def __init__(self, answered: Sequence[Answered], index: VectorReads) -> None:
        self._answered = answered
        self._index = index

    async def search(self, space: VectorSpace, vector: Vector, where: MemoryFilter, limit: int) -> Sequence[Scored]:
        """Return the nearest points."""
        one, number = self._find(space, vector, where)
        if one is None or limit != one.search.dense_limit or _ties_at_cut(one.dense[number], limit):
            return await self._index.search(space, vector, where, limit)
        return contract.score_wholes(one.dense[number][:limit])

    async def search_passages(
        self,
        space: VectorSpace,
        vector: Vector,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
    ) -> Nearest:
        """Return the texts with the nearest passages; those of `memory_ids` are asked for."""
        one, number = self._find(space, vector, where)
        if one is not None and one.passages and memory_ids is None and limit == one.search.passage_limit:
            found = one.passages[number]
            if contract.is_settled(found, _text_limit(space, limit), limit):
                return contract.best_memories(found, limit)
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
        one, number = self._find(space, question, where)
        if one is None or not one.maxsim or (memory_ids is None) != (one.search.candidates is None):
            return await self._index.maxsim(space, question, where, limit, memory_ids, pooled)
        found = one.maxsim[number]
        if memory_ids is None:
            is_settled = contract.is_settled(found, _text_limit(space, limit), limit)
            if limit != one.search.maxsim_limit or not is_settled:
                return await self._index.maxsim(space, question, where, limit, None, pooled)
            return contract.best_memories(found, limit)
        wanted, settled = frozenset(memory_ids), _settled(one, number)
        missing = [memory_id for memory_id in contract.validate_ids(memory_ids) if memory_id not in settled]
        scored = [hit for hit in found if hit.memory_id in wanted and hit.memory_id in settled]
        if missing:
            others = await self._index.maxsim(space, question, where, len(missing), missing, pooled)
            scored += contract.hits_of(others)
        return contract.best_memories(scored, limit)

    def _find(self, space: VectorSpace, rows: Vector | Matrix, where: MemoryFilter) -> tuple[Answered | None, int]:
        for one in self._answered:
            if (number := one.question(space, rows, where)) is not None:
                if one.error is not None:
                    raise one.error
                return one, number
        return None, 0


def _ties_at_cut(found: Hits, limit: int) -> bool:
    """True if the server left out points of the score of the last one, so that ties are not by id."""
    return len(found) > limit and found[limit].score == found[limit - 1].score


def _settled(one: Answered, number: int) -> frozenset[str]:
    """Return the memories whose score is known, or that have none."""
    hits, has_parts = one.maxsim[number], one.search.space.fingerprint.passages is not None
    scored = frozenset(hit.memory_id for hit in hits if hit.part is None)
    if len(hits) >= _candidate_limit(one.search):
        return scored  # A collection of several shards takes candidates of each: not all scores came.
    limit, settled = one.search.dense_limit, scored.union(one.search.candidates or ())
    for found in one.dense:
        # Of points that tie at the cut the server takes any.
        cut = found[limit].score if len(found) > limit else None
        near = {hit.memory_id for hit in found[:limit] if hit.score != cut}
        # One without a score may be cut: of its passages the server took none as candidates.
        settled |= near & scored if has_parts else near
    return settled


def _candidate_limit(search: PlannedSearch) -> int:
    return len(search.questions) * search.dense_limit + _candidate_points(search) + 1


def _candidate_points(search: PlannedSearch) -> int:
    """Return the most points that the candidates have."""
    return len(search.candidates or ()) * (1 if search.space.fingerprint.passages is None else MAX_PASSAGES + 1)


def _text_limit(space: VectorSpace, limit: int) -> int:
    """Return how many of the best texts are asked for, so that they nearly always have that many memories."""
    return (limit + 1) * (1 if space.fingerprint.passages is None else contract.WIDENING_FACTOR)


def planned_queries(search: PlannedSearch) -> list[PointQuery]:
    """Return the queries of a search: for each question by its pooled vector, then of passages, then by token vectors.

    One hit more than wanted says whether scores tie at the cut. Raises ValueError for vectors that the space does not
    take.
    """
    for one in search.questions:
        contract.check_vector(search.space, one.pooled)
        contract.check_rows(search.space, one.tokens)
    using, where = payload.pooled_name(search.space.fingerprint), search.where
    has_parts = search.space.fingerprint.passages is not None
    whole = PointQuery(using, None, where, search.dense_limit + 1, has_lengths=has_parts)
    dense = [replace(whole, rows=one.pooled) for one in search.questions]
    if has_parts and search.passage_limit is not None:
        limit = _text_limit(search.space, search.passage_limit)
        dense += [PointQuery(PASSAGE, one.pooled, where, limit, has_parts=True) for one in search.questions]
    if search.maxsim_limit is None:
        return dense
    late = PointQuery(payload.TOKENS, None, where, _text_limit(search.space, search.maxsim_limit), has_parts=has_parts)
    if search.candidates is None:
        return [*dense, *(replace(late, rows=one.tokens) for one in search.questions)]
    prefetch = [PointQuery(using, one.pooled, where, search.dense_limit) for one in search.questions]
    if search.candidates:
        limit = _candidate_points(search)
        prefetch.append(PointQuery(None, None, where, limit, search.candidates, has_parts=has_parts))
    late = replace(late, limit=_candidate_limit(search), prefetch=prefetch)
    return [*dense, *(replace(late, rows=one.tokens) for one in search.questions)]


async def read_ahead(searches: Sequence[PlannedSearch], send: SendQueries, index: VectorReads) -> ReadAhead:
    """Send all queries of a question, those of one collection in one request, and wait for all answers."""
    by_space: dict[VectorSpace, list[PlannedSearch]] = {}
    for search in searches:
        by_space.setdefault(search.space, []).append(search)
    parts = await asyncio.gather(*(_answered(space, some, send) for space, some in by_space.items()))
    return ReadAhead([one for part in parts for one in part], index)


async def _answered(space: VectorSpace, searches: Sequence[PlannedSearch], send: SendQueries) -> list[Answered]:
    """Return the answers of one collection; an error is raised by the reads of its searches alone."""
    try:
        queries = {number: planned_queries(search) for number, search in enumerate(searches)}
        hits = iter(await send(space, [query for some in queries.values() for query in some]))
    except Exception as error:
        return [Answered(search, (), (), (), error) for search in searches]
    return [_parted(search, [next(hits) for _ in queries[number]]) for number, search in enumerate(searches)]


def _parted(search: PlannedSearch, hits: Sequence[Hits]) -> Answered:
    count, has_late = len(search.questions), search.maxsim_limit is not None
    late = len(hits) - count if has_late else len(hits)
    return Answered(
        search,
        dense=[contract.by_direction(one) for one in hits[:count]],
        maxsim=[contract.by_score(one) for one in hits[late:]],
        passages=[contract.by_cosine(one) for one in hits[count:late]],
    )
