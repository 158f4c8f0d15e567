"""The nearest memories of a question, lane by lane, each with its own model in its own space.

A lane without a memory that the read may see costs nothing: no model is asked for, no question embedded. Where one
lane has vectors that can't be asked, the others are not asked either: ranks of some would stand beside nothing.
While the model has the question, in a process of its own, its words are counted here. Where a mode has a model for each
language, and memories of both, both read the question: every memory is compared by the model that made its vector.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from agents.modes.vector_spaces import VectorSpaces
from agents.ports.embedder import Embedder
from agents.ports.vector_index import VectorIndex
from agents.retrieval.lexical_features import LexicalFeatures
from agents.retrieval.query_encoders import EncoderKey, EncodingResult, QueryEncoder, encode_query, usable_encodings
from agents.rules.index.columns import MISSING
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.query.mode_searches import ModeSearch
from agents.rules.query.plans import SearchPlan
from agents.rules.ranking.candidates import select_candidates
from agents.rules.ranking.cross_lingual import (
    CROSS_LINGUAL_BIAS,
    is_worth_asking,
    merge_cross_lingual,
    other_language_mask,
    split_by_language,
)
from agents.rules.ranking.rank_fusion import ModeSearchResult
from agents.rules.ranking.token_weights import weight_query_tokens
from schemas.failures import ModelMissing, Unavailable
from schemas.modes import VectorSpace
from schemas.vectors import Encoded, Matrix, Scored

DENSE_LIMIT = 200
"""Nearest vectors that are asked for where there are few. Every one costs some 5 us; 300 find no more."""

DENSE_CANDIDATE_LIMIT = 300
"""Nearest vectors where they are candidates: on LoCoMo and our chats as one user 200 find 0.3 points less at R@10."""

MAXSIM_LIMIT = 300
"""Best memories by late interaction that are asked for: what is not found counts as the last that was. 900 find 0.2
points more at R@10, and take 3 ms longer."""

MAXSIM_FULL_SCAN_LIMIT = 1000
"""Memories up to which late interaction looks at all of them, which takes 15 ms at 5,000. Of more it looks at
candidates: on conversations of 6,000 turns of one user that finds as much."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class _Opened:
    """A lane before its index is asked, with its space and who reads the question where there are vectors."""

    nearest: ModeSearchResult
    space: VectorSpace | None = None
    readers: Sequence[QueryEncoder] = ()

    @property
    def many(self) -> bool:
        """Whether there are too many vectors to compare them all token by token."""
        return self.nearest.count > MAXSIM_FULL_SCAN_LIMIT


class VectorSearch:
    """Asks the models and the vector index of one deployment."""

    def __init__(self, vectors: VectorIndex, spaces: VectorSpaces) -> None:
        self._vectors = vectors
        self._spaces = spaces

    async def nearest(self, search: SearchPlan, words: LexicalFeatures) -> list[ModeSearchResult]:
        """The nearest memories of a question in each lane, in the order of the lanes; at least one lane."""
        roster = words.memory_columns()
        opened = [self._opened(lane, roster, search) for lane in search.mode_searches]
        if any(one.nearest.status == "unavailable" for one in opened):
            return [one.nearest for one in opened]
        readers = [reader for one in opened for reader in one.readers]
        questions = await encode_query(readers, search.question.text, meanwhile=words.now)
        return await _together([self._found(one, questions, search, words) for one in opened])

    def _opened(self, lane: ModeSearch, roster: MemoryColumns, search: SearchPlan) -> _Opened:
        admitted = roster.admitted(lane.where, include_superseded=search.request.include_superseded)
        if not admitted.any():
            return _Opened(ModeSearchResult(lane, "empty"))
        try:
            model, space = self._spaces.resolve(lane.mode)
        except ModelMissing as problem:
            has_vectors = (admitted & (roster.columns.spaces != MISSING)).any()
            return _Opened(
                ModeSearchResult(lane, "unavailable" if has_vectors else "not_indexed", missing=str(problem))
            )
        digest = space.fingerprint.digest
        embedded = admitted & roster.embedded(digest)
        count = int(embedded.sum())
        if not count:
            return _Opened(ModeSearchResult(lane, "not_indexed", digest, missing="no vectors yet"))
        elsewhere = int((embedded & other_language_mask(roster, foreign=search.question.foreign)).sum())
        nearest = ModeSearchResult(lane, "ok", digest, count)
        return _Opened(nearest, space, self._readers(nearest, model, search.question.text, elsewhere))

    def _readers(self, nearest: ModeSearchResult, model: Embedder, text: str, elsewhere: int) -> list[QueryEncoder]:
        """Who reads the question; `elsewhere` is how many of the memories are in a language that its model is not."""
        mode = nearest.mode_search.mode
        own = QueryEncoder(model, nearest.space, mode.embedder, mode.query_prefix)
        other = self._spaces.cross_lingual(mode, text) if is_worth_asking(elsewhere, nearest.count) else None
        if other is None:
            return [own]
        crossing = replace(own, model=other, cross_lingual=True)
        return [crossing] if elsewhere == nearest.count else [own, crossing]

    async def _found(
        self, one: _Opened, questions: Mapping[EncoderKey, EncodingResult], search: SearchPlan, words: LexicalFeatures
    ) -> ModeSearchResult:
        if one.space is None:
            return one.nearest
        try:
            asked = usable_encodings(one.readers, questions)
            found = await self._dense(one, one.space, asked, search, words)
            late = await self._late(one, one.space, asked, search, words, found)
        except (ModelMissing, Unavailable) as failure:
            return replace(one.nearest, status="unavailable", missing=str(failure))
        return replace(one.nearest, found=found, maxsim=late)

    async def _dense(
        self,
        one: _Opened,
        space: VectorSpace,
        asked: Mapping[bool, Encoded],
        search: SearchPlan,
        words: LexicalFeatures,
    ) -> list[Scored]:
        """The best by cosine, each memory by the model that made its vector."""
        limit, where = DENSE_CANDIDATE_LIMIT if one.many else DENSE_LIMIT, one.nearest.mode_search.where
        calls = [self._vectors.search(space, question.pooled, where, limit) for question in asked.values()]
        found = dict(zip(asked, await _together(calls), strict=True))
        foreign = search.question.foreign
        return merge_cross_lingual(
            found, words.memory_columns(), foreign=foreign, bias=CROSS_LINGUAL_BIAS[foreign].dense, limit=limit
        )

    async def _late(
        self,
        one: _Opened,
        space: VectorSpace,
        asked: Mapping[bool, Encoded],
        search: SearchPlan,
        words: LexicalFeatures,
        found: Sequence[Scored],
    ) -> list[Scored]:
        """The best by late interaction: of all memories, or of candidates from several sides."""
        where, foreign, chosen = one.nearest.mode_search.where, search.question.foreign, None
        if not space.fingerprint.token_dim:
            return []
        if one.many:
            roster = words.memory_columns()
            admitted = roster.admitted(where, include_superseded=search.request.include_superseded)
            chosen = select_candidates([near.memory_id for near in found], words.now().lexical, roster, admitted)
        limit = MAXSIM_LIMIT if chosen is None else len(chosen)
        parts = (
            {}
            if chosen is None or len(asked) == 1
            else split_by_language(chosen, words.memory_columns(), foreign=foreign)
        )
        calls = [
            self._vectors.maxsim(space, _rows(question, search, words), where, limit, parts.get(crosses, chosen))
            for crosses, question in asked.items()
        ]
        late = dict(zip(asked, await _together(calls), strict=True))
        return merge_cross_lingual(
            late, words.memory_columns(), foreign=foreign, bias=CROSS_LINGUAL_BIAS[foreign].maxsim, limit=limit
        )


def _rows(question: Encoded, search: SearchPlan, words: LexicalFeatures) -> Matrix:
    """The token vectors of a question, each as long as its token counts among these memories."""
    asked, told = search.question, words.now()
    frequencies = {term: len(where.numbers) for term, where in zip(asked.terms, told.postings, strict=True)}
    spans = np.zeros((len(question.tokens), 2), np.int32) if question.spans is None else question.spans
    return weight_query_tokens(question.tokens, spans, asked.text, frequencies, told.documents)


async def _together(calls: Sequence[Coroutine[Any, Any, _Result]]) -> list[_Result]:
    """The results of calls that run at the same time, in their order."""
    # A task for each would slow down what is asked nearly always: one call.
    return [await calls[0]] if len(calls) == 1 else list(await asyncio.gather(*calls))
