"""Retrieval with a model, where it was asked for: which layer suffices, and in which order the best hits are.

Each is one call, within the question's deadline; language models are asked by users in turn. A search comes after each
call, because memories may have changed meanwhile: what was forgotten is in no answer. Where no model can be asked,
nothing is searched twice.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from modestream_client.hits import Hit

from agents.ports.pipelines import State
from agents.retrieval.model_steps import NO_MODEL, JudgeLayers, LocalRerank, NoModelAnswer, Rerank
from agents.retrieval.retrieve import RERANK, ROUTE, Retrieve
from agents.rules.answer.drill_down import JudgedDepth, Layers
from agents.rules.answer.reranking import HitOrder, arrange
from schemas.messages.replies import ReplyWarning, SuccessReply
from schemas.messages.retrieval import RetrieveRequest, RetrieveResult
from streams.fair_queue import FairTurns

MAX_ASKED_AT_ONCE = 8
"""Questions about which models are asked at a time, four of one user: a flood of one leaves a turn to the next one."""

MAX_MODEL_TURN_S = 60.0
"""A turn ends with its question's time limit; this bounds nothing that is set sensibly."""

MIN_ORDERED_HITS = 2
"""Hits of which there is an order."""

Answer = TypeVar("Answer")

Search = Callable[[Callable[[RetrieveRequest], Awaitable[Any]], RetrieveRequest], Awaitable[SuccessReply]]
"""Has an agent answer a request, in a turn of the request's user. Raises Expired."""


class Expired(Exception):
    """The deadline of a request is over: it gets no answer."""


class OrdersHits(Protocol):
    """An agent that gives the best hits another order; `timeout_s` bounds `order`."""

    timeout_s: float

    def is_available(self) -> bool:
        """False if it can't be asked now."""

    def widened(self, request: RetrieveRequest) -> RetrieveRequest:
        """Return the request with as many hits as the model is shown, or more."""

    def shown(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        """Return the hits that the model reads."""

    async def order(self, request: RetrieveRequest, hits: Sequence[Hit]) -> HitOrder:
        """Return the order of hits. Raises NoModelAnswer."""


@dataclass(frozen=True, slots=True)
class RetrievalAgents:
    """The agents of a partition that answer questions."""

    retrieve: Retrieve
    rerank: Rerank
    local_rerank: LocalRerank
    judge_layers: JudgeLayers

    def orders_hits(self, request: RetrieveRequest) -> OrdersHits | None:
        """Return the agent that orders the hits of a request, if any does."""
        asked = (rerank for rerank in (self.rerank, self.local_rerank) if rerank.is_asked(request))
        return next(asked, None) if self.retrieve.pipelines.is_on(RERANK) else None


@dataclass(frozen=True, slots=True)
class Question:
    """A question on its way through the steps that may ask a model.

    `turns` are those of users at language models; `time_left` returns the seconds until the deadline.
    """

    agents: RetrievalAgents
    request: RetrieveRequest
    search: Search
    turns: FairTurns
    time_left: Callable[[], float]

    async def answer(self) -> SuccessReply:
        """Return the answer. Raises Expired."""
        request, run = self.request, self.agents.retrieve.pipelines.run
        state: State = {"query": request.query, "request": request}
        if self.agents.judge_layers.is_asked(request):
            await run({ROUTE: self._judge}, state)
        judged: JudgedDepth | None = state.get("judged")
        rerank = self.agents.orders_hits(request)
        state |= {"rerank": rerank, "depth": None if judged is None else judged.depth}
        await self._search(state)
        await run({RERANK: self._order if rerank else None}, state)
        result: RetrieveResult = state["result"]
        if state["hits"] is not result.hits:
            result = result.model_copy(update={"hits": state["hits"][: request.top_k]})
        if judged is not None:
            result = judged.noted(result, explain=request.explain)
        return SuccessReply(result, (*state["searched"], *state.get("warnings", ())))

    async def _search(self, state: State) -> None:
        """Put a result with its hits and its warnings into the state: as many hits as `rerank` needs."""
        wanted = self.request if state["rerank"] is None else state["rerank"].widened(self.request)
        reply = await self.search(partial(self.agents.retrieve.answer, decided=state["depth"]), wanted)
        assert isinstance(reply.result, RetrieveResult)
        state |= {"result": reply.result, "hits": reply.result.hits, "searched": reply.warnings}

    async def _judge(self, _state: State) -> State | None:
        """Return the depth that the model decides; a warning if the rules do, nothing if there are no layers."""
        judge = self.agents.judge_layers
        try:
            judge.model.require()
            layers = (await self.search(self.agents.retrieve.layers, self.request)).result
            if not isinstance(layers, Layers) or not layers.depths:
                return None
            # The search is still to come, and maybe the order of its hits.
            within_s = min(judge.model.timeout_s, self.time_left() / 2)
            turn = self.turns.turn(self.request.scope.boundary)
            return {"judged": await _in_time(within_s, turn, partial(judge.judge, layers))}
        except NoModelAnswer as problem:
            message = f"rules decided which layer suffices: {problem}"
            return {"warnings": [ReplyWarning("sufficiency_by_rules", message)]}

    async def _order(self, state: State) -> State:
        """Ask the model for an order in a turn at the model, without one at searches, and search again."""
        rerank: OrdersHits = state["rerank"]
        order: HitOrder | None = None
        warnings = state.get("warnings", [])
        try:
            if len(rerank.shown(state["hits"])) >= MIN_ORDERED_HITS:
                order = await self._asked(rerank, state)
        except NoModelAnswer as problem:
            warnings = [ReplyWarning("not_reranked", f"the hits have the order of the search: {problem}"), *warnings]
        result = arrange(state["result"], order, self.request)
        return {"result": result, "hits": result.hits, "warnings": warnings}

    async def _asked(self, rerank: OrdersHits, state: State) -> HitOrder:
        """Return the model's order, with the state of a later search. Raises NoModelAnswer."""
        if not rerank.is_available():
            raise NoModelAnswer(NO_MODEL)
        # Pairs of the cross-encoder wait in a queue by user.
        is_local = rerank is self.agents.local_rerank
        turn = nullcontext() if is_local else self.turns.turn(self.request.scope.boundary)
        ask = partial(rerank.order, self.request, state["hits"])
        try:
            order = await _in_time(min(rerank.timeout_s, self.time_left()), turn, ask)
        except NoModelAnswer:
            await self._search(state)
            raise
        await self._search(state)
        return order


async def _in_time(
    within_s: float, turn: AbstractAsyncContextManager[None], ask: Callable[[], Awaitable[Answer]]
) -> Answer:
    """Return a model's answer. Raises NoModelAnswer, also if turn and answer take longer than `within_s`."""
    try:
        async with asyncio.timeout(within_s), turn:
            return await ask()
    except TimeoutError as late:
        raise NoModelAnswer(f"the model did not answer within {within_s:.1f} s") from late
