"""The nearest memories of a question, lane by lane, each with its own model in its own space.

A lane without a memory that the read may see costs nothing: no model is asked for, no question embedded. Where one
lane has vectors that can't be asked, the others are not asked either: ranks of some would stand beside nothing.
While the model has the question, in a process of its own, its words are counted here.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from agents.mode_spaces import ModeSpaces
from agents.ports import Embedder, VectorIndex
from agents.rules.candidates import candidates
from agents.rules.fusion import Nearest
from agents.rules.lanes import Lane
from agents.rules.roster import NOBODY, Roster
from agents.rules.searches import Search
from agents.rules.token_weights import weighted
from agents.word_clues import WordClues
from schemas.failures import ModelMissing, Unavailable
from schemas.modes import VectorSpace
from schemas.vectors import Encoded, Scored

DENSE_LIMIT = 200
"""Nearest vectors that are asked for where there are few. Every one costs some 5 us; 300 find no more."""

DENSE_OF_MANY = 300
"""Nearest vectors where they are candidates: on LoCoMo and our chats as one user 200 find 0.3 points less at R@10."""

LATE_LIMIT = 300
"""Best memories by late interaction that are asked for: what is not found counts as the last that was. 900 find 0.2
points more at R@10, and take 3 ms longer."""

LATE_OVER_ALL = 1000
"""Memories up to which late interaction looks at all of them, which takes 15 ms at 5,000. Of more it looks at
candidates: on conversations of 6,000 turns of one user that finds as much."""

_Read = Encoded | ModelMissing | Unavailable
"""A question's vectors, or why there are none."""

_Key = tuple[str, str, str | None]
"""Digest of the space, embedder, query prefix."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class _Opened:
    """A lane before its index is asked, with its model where there are vectors to ask for."""

    nearest: Nearest
    model: tuple[Embedder, VectorSpace] | None = None

    @property
    def key(self) -> _Key:
        """What decides where the question lies."""
        mode = self.nearest.lane.mode
        return self.nearest.space, mode.embedder, mode.query_prefix

    @property
    def many(self) -> bool:
        """Whether there are too many vectors to compare them all token by token."""
        return self.nearest.count > LATE_OVER_ALL


class VectorSearch:
    """Asks the models and the vector index of one deployment."""

    def __init__(self, vectors: VectorIndex, spaces: ModeSpaces) -> None:
        self._vectors = vectors
        self._spaces = spaces

    async def nearest(self, search: Search, words: WordClues) -> list[Nearest]:
        """The nearest memories of a question in each lane, in the order of the lanes; at least one lane."""
        superseded, roster = search.request.include_superseded, words.roster()
        opened = [self._opened(lane, roster, superseded) for lane in search.lanes]
        if any(one.nearest.sight == "blind" for one in opened):
            return [one.nearest for one in opened]
        questions = await _embedded(opened, search.question.text, meanwhile=words.now)
        return await _together([self._found(one, questions, search, words) for one in opened])

    def _opened(self, lane: Lane, roster: Roster, include_superseded: bool) -> _Opened:
        admitted = roster.admitted(lane.where, include_superseded=include_superseded)
        if not admitted.any():
            return _Opened(Nearest(lane, "empty"))
        try:
            model = self._spaces.opened(lane.mode)
        except ModelMissing as problem:
            has_vectors = (admitted & (roster.columns.spaces != NOBODY)).any()
            return _Opened(Nearest(lane, "blind" if has_vectors else "waiting", missing=str(problem)))
        space = model[1].fingerprint.digest
        count = int((admitted & roster.embedded(space)).sum())
        if not count:
            return _Opened(Nearest(lane, "waiting", space, missing="no vectors yet"))
        return _Opened(Nearest(lane, "seen", space, count), model)

    async def _found(self, one: _Opened, questions: Mapping[_Key, _Read], search: Search, words: WordClues) -> Nearest:
        if one.model is None:
            return one.nearest
        question = questions[one.key]
        if isinstance(question, ModelMissing | Unavailable):
            return _blind(one.nearest, question)
        space, where = one.model[1], one.nearest.lane.where
        try:
            found = await self._vectors.search(
                space, question.pooled, where, DENSE_OF_MANY if one.many else DENSE_LIMIT
            )
            late = await self._late(one, space, question, search, words, found) if space.fingerprint.token_dim else []
        except Unavailable as failure:
            return _blind(one.nearest, failure)
        return replace(one.nearest, found=found, late=late)

    async def _late(
        self,
        one: _Opened,
        space: VectorSpace,
        question: Encoded,
        search: Search,
        words: WordClues,
        found: Sequence[Scored],
    ) -> list[Scored]:
        """The best by late interaction: of all memories, or of candidates from several sides."""
        asked, roster, told = search.question, words.roster(), words.now()
        frequencies = {term: len(where.numbers) for term, where in zip(asked.terms, told.postings, strict=True)}
        spans = np.zeros((len(question.tokens), 2), np.int32) if question.spans is None else question.spans
        rows = weighted(question.tokens, spans, asked.text, frequencies, roster.documents)
        chosen = None
        if one.many:
            admitted = roster.admitted(one.nearest.lane.where, include_superseded=search.request.include_superseded)
            chosen = candidates([near.memory_id for near in found], told.by_words, roster, admitted)
        limit = LATE_LIMIT if chosen is None else len(chosen)
        return await self._vectors.late(space, rows, one.nearest.lane.where, limit, chosen)


async def _embedded(opened: Sequence[_Opened], text: str, meanwhile: Callable[[], object]) -> Mapping[_Key, _Read]:
    """The question by every model that is to see it, once each, or why it has none."""
    models = {one.key: one.model[0] for one in opened if one.model is not None}
    asked = [asyncio.ensure_future(_asked(model, text)) for model in models.values()]
    # The tasks run up to where they wait for the models.
    await asyncio.sleep(0)
    meanwhile()
    return dict(zip(models, await asyncio.gather(*asked), strict=True))


async def _asked(model: Embedder, text: str) -> _Read:
    try:
        return await model.query(text)
    except (ModelMissing, Unavailable) as failure:
        return failure


async def _together(calls: Sequence[Coroutine[Any, Any, _Result]]) -> list[_Result]:
    """The results of calls that run at the same time, in their order."""
    # A task for each would slow down what is asked nearly always: one call.
    return [await calls[0]] if len(calls) == 1 else list(await asyncio.gather(*calls))


def _blind(nearest: Nearest, failure: ModelMissing | Unavailable) -> Nearest:
    return replace(nearest, sight="blind", missing=str(failure))
