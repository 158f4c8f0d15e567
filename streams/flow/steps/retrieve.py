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

from agents.ports.run_timer import step
from agents.retrieval.model_steps import NO_MODEL, JudgeLayers, LocalRerank, NoModelAnswer, Rerank
from agents.retrieval.retrieve import SearchWithCustomSteps
from agents.rules.answer.drill_down import JudgedDepth, Layers
from agents.rules.answer.reranking import HitOrder, arrange
from schemas.messages.replies import ReplyWarning, SuccessReply
from schemas.messages.retrieval import RetrieveRequest, RetrieveResult
from streams.fair_queue import FairTurns
from streams.flow.requests.channel import HandlerResult

MAX_ASKED_AT_ONCE = 8
"""Questions about which models are asked at a time, four of one user: a flood of one leaves a turn to the next one."""

MAX_MODEL_TURN_S = 60.0
"""A turn ends with its question's time limit; this bounds nothing that is set sensibly."""

MIN_ORDERED_HITS = 2
"""Hits of which there is an order."""

Answer = TypeVar("Answer")

Search = Callable[[Callable[[RetrieveRequest], Awaitable[Any]], RetrieveRequest], Awaitable[HandlerResult]]
"""Has an agent answer a request, in a turn of the request's user; without an answer once its deadline is over."""


@dataclass(frozen=True, slots=True)
class RetrievalAgents:
    """The agents of a partition that answer questions."""

    retrieve: SearchWithCustomSteps
    rerank: Rerank
    local_rerank: LocalRerank
    judge_layers: JudgeLayers

    def ask_models(self, request: RetrieveRequest) -> bool:
        """True if a model takes part in the answer."""
        return any(asking.is_asked(request) for asking in (self.rerank, self.local_rerank, self.judge_layers))


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


class RetrieveWithModels:
    """Questions in, answers out. One in a worker."""

    def __init__(self) -> None:
        self._turns = FairTurns(MAX_ASKED_AT_ONCE, MAX_MODEL_TURN_S)

    async def __call__(
        self, agents: RetrievalAgents, request: RetrieveRequest, search: Search, time_left: Callable[[], float]
    ) -> HandlerResult:
        """Answer a question; `time_left` returns the seconds until its deadline."""
        judged: JudgedDepth | None = None
        warnings: tuple[ReplyWarning, ...] = ()
        if agents.judge_layers.is_asked(request):
            judged, warnings = await self._judge(agents, request, search, time_left)
        answer = partial(agents.retrieve.answer, decided=None if judged is None else judged.depth)
        if agents.rerank.is_asked(request):
            turn = self._turns.turn(request.scope.boundary)
            found = await self._reranked(agents.rerank, request, partial(search, answer), time_left, turn)
        elif agents.local_rerank.is_asked(request):
            # Its pairs wait in a queue by user.
            found = await self._reranked(
                agents.local_rerank, request, partial(search, answer), time_left, nullcontext()
            )
        else:
            found = await search(answer, request)
        if found.answer is None or not isinstance(found.answer.result, RetrieveResult):
            return found
        result = found.answer.result if judged is None else judged.noted(found.answer.result, explain=request.explain)
        return HandlerResult(SuccessReply(result, (*found.answer.warnings, *warnings)))

    async def _judge(
        self, agents: RetrievalAgents, request: RetrieveRequest, search: Search, time_left: Callable[[], float]
    ) -> tuple[JudgedDepth | None, tuple[ReplyWarning, ...]]:
        """Return the depth that the model decides; None with a warning if the rules do, and if there are no layers."""
        judge = agents.judge_layers
        if not judge.model.is_available():
            return None, _by_rules(NO_MODEL)
        found = await search(agents.retrieve.layers, request)
        layers = None if found.answer is None else found.answer.result
        if not isinstance(layers, Layers) or not layers.depths:
            return None, ()
        try:
            asking = partial(judge.judge, layers)
            # The search is still to come, and maybe the order of its hits.
            with step("retrieve.route"):
                within_s = min(judge.model.timeout_s, time_left() / 2)
                return await _in_time(within_s, self._turns.turn(request.scope.boundary), asking), ()
        except NoModelAnswer as problem:
            return None, _by_rules(problem)

    async def _reranked(
        self,
        rerank: OrdersHits,
        request: RetrieveRequest,
        search: Callable[[RetrieveRequest], Awaitable[HandlerResult]],
        time_left: Callable[[], float],
        turn: AbstractAsyncContextManager[None],
    ) -> HandlerResult:
        """Search, ask the model for an order in its `turn` but without a turn of its user, and search again."""
        found = await search(rerank.widened(request))
        if found.answer is None or not isinstance(found.answer.result, RetrieveResult):
            return found
        hits = found.answer.result.hits
        if len(rerank.shown(hits)) < MIN_ORDERED_HITS:
            return _arranged(found, None, request)
        if not rerank.is_available():
            return _arranged(found, None, request, _not_reranked(NO_MODEL))
        order: HitOrder | None = None
        warnings: tuple[ReplyWarning, ...] = ()
        try:
            with step("retrieve.rerank"):
                within_s = min(rerank.timeout_s, time_left())
                order = await _in_time(within_s, turn, partial(rerank.order, request, hits))
        except NoModelAnswer as problem:
            warnings = _not_reranked(problem)
        return _arranged(await search(rerank.widened(request)), order, request, warnings)


async def _in_time(
    within_s: float, turn: AbstractAsyncContextManager[None], ask: Callable[[], Awaitable[Answer]]
) -> Answer:
    """Return a model's answer. Raises NoModelAnswer, also if turn and answer take longer than `within_s`."""
    try:
        async with asyncio.timeout(within_s), turn:
            return await ask()
    except TimeoutError as late:
        raise NoModelAnswer(f"the model did not answer within {within_s:.1f} s") from late


def _arranged(
    found: HandlerResult, order: HitOrder | None, request: RetrieveRequest, warnings: tuple[ReplyWarning, ...] = ()
) -> HandlerResult:
    """Return the answer of a widened search as the request asked for it."""
    if found.answer is None or not isinstance(found.answer.result, RetrieveResult):
        return found
    result = arrange(found.answer.result, order, request)
    return HandlerResult(SuccessReply(result, (*found.answer.warnings, *warnings)))


def _not_reranked(reason: object) -> tuple[ReplyWarning, ...]:
    return (ReplyWarning("not_reranked", f"the hits have the order of the search: {reason}"),)


def _by_rules(reason: object) -> tuple[ReplyWarning, ...]:
    return (ReplyWarning("sufficiency_by_rules", f"rules decided which layer suffices: {reason}"),)
