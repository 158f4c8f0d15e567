"""A question sends all its reads ahead, of all its modes at once, so that they are one round trip."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from agents.ports.indexes import PlannedSearch, VectorReads
from agents.retrieval import vector_search
from schemas.models.vectors import Matrix, MemoryFilter, Nearest, Scored, Vector
from schemas.state.modes import VectorSpace
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.harnesses.modes import filled, found, library_of_modes
from tests.harnesses.retrieval import RetrievalHarness


@dataclass
class PlannedReads:
    """Answers only what was planned, and counts what was asked."""

    planned: Sequence[PlannedSearch]
    index: VectorReads
    asked: int = 0
    candidates_asked: int = 0

    async def search(
        self, space: VectorSpace, vector: Vector, where: MemoryFilter, limit: int, *ids: Any
    ) -> Sequence[Scored]:
        plan = self._plan(space, where)
        assert any(question.pooled is vector for question in plan.questions)
        assert plan.dense_limit == limit
        return await self.index.search(space, vector, where, limit, *ids)

    async def search_passages(
        self,
        space: VectorSpace,
        vector: Vector,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
    ) -> Nearest:
        plan = self._plan(space, where)
        assert any(question.pooled is vector for question in plan.questions)
        assert memory_ids is not None or plan.passage_limit == limit
        return await self.index.search_passages(space, vector, where, limit, memory_ids)

    async def maxsim(
        self,
        space: VectorSpace,
        question: Matrix,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
        pooled: Vector | None = None,
    ) -> Nearest:
        plan = self._plan(space, where)
        assert any(each.tokens is question for each in plan.questions)
        if plan.candidates is None:
            assert plan.maxsim_limit == limit
            assert memory_ids is None
        else:
            nearest = [
                await self.index.search(space, question.pooled, where, plan.dense_limit) for question in plan.questions
            ]
            assert memory_ids is not None
            assert set(memory_ids) <= {*plan.candidates, *(hit.memory_id for found in nearest for hit in found)}
            self.candidates_asked += 1
        return await self.index.maxsim(space, question, where, limit, memory_ids, pooled)

    def _plan(self, space: VectorSpace, where: MemoryFilter) -> PlannedSearch:
        self.asked += 1
        [plan] = [search for search in self.planned if (search.space, search.where) == (space, where)]
        return plan


@pytest.fixture
async def library(words: SqliteLexicalIndex) -> RetrievalHarness:
    made = library_of_modes(words)
    await filled(made)
    return made


def reads_of(library: RetrievalHarness) -> list[PlannedReads]:
    made: list[PlannedReads] = []

    async def read_ahead(searches: Sequence[PlannedSearch]) -> VectorReads:
        made.append(PlannedReads(searches, library.vectors))
        return made[-1]

    library.vectors.read_ahead = read_ahead  # type: ignore[method-assign]
    return made


async def test_question_over_all_modes_sends_its_reads_ahead_at_once(library: RetrievalHarness) -> None:
    made = reads_of(library)
    result, _ = await library.ask("what leaks?", mode="*")
    assert found(result) == {"code", "journal"}
    [reads] = made
    assert {search.space.mode for search in reads.planned} == {"code", "journal"}
    assert reads.asked >= len(reads.planned)


async def test_candidates_of_late_interaction_are_sent_ahead_where_a_read_is_a_round_trip(
    library: RetrievalHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_search, "MAXSIM_FULL_SCAN_LIMIT", 1)
    library.vectors.is_remote = True
    made = reads_of(library)
    result, _ = await library.ask("what leaks?", mode="*")
    assert found(result) == {"code", "journal"}
    [reads] = made
    assert reads.candidates_asked == len(reads.planned)
