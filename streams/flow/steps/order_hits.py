"""Asks a language model for the order of a question's hits: users in turn, and within the question's deadline."""

import asyncio

from agents.retrieval.rerank import NotReranked, Rerank
from agents.rules.answer.reranking import RankedHits
from schemas.messages.replies import ReplyWarning
from schemas.messages.retrieval import RetrieveRequest, RetrieveResult
from streams.flow.support.fair_turns import FairTurns

MAX_ORDERED_AT_ONCE = 8
"""Questions whose hits are ordered at a time, four of one user: a flood of one user leaves a turn to the next one."""

MAX_MODEL_TURN_S = 60.0
"""A turn ends with its question's time limit; this bounds nothing that is set sensibly."""


class OrderHits:
    """Questions with their hits in, orders out. One in a worker."""

    def __init__(self) -> None:
        self._turns = FairTurns(MAX_ORDERED_AT_ONCE, MAX_MODEL_TURN_S)

    async def __call__(
        self, rerank: Rerank, request: RetrieveRequest, result: RetrieveResult, left_s: float
    ) -> tuple[RankedHits | None, tuple[ReplyWarning, ...]]:
        """Return the order, or None with a warning that says why there is none; `left_s` until the deadline."""
        within_s = min(rerank.timeout_s, left_s)
        try:
            async with asyncio.timeout(within_s), self._turns.turn(request.scope.boundary):
                return await rerank.order(request.query, result.hits), ()
        except TimeoutError:
            reason = f"the language model did not answer within {within_s:.1f} s"
        except NotReranked as problem:
            reason = str(problem)
        return None, (ReplyWarning("not_reranked", f"the hits have the order of the search: {reason}"),)
