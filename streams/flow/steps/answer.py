"""Handlers of the retrieve topic: hits, contexts, lists and maps, after the caller's own writes are applied."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from time import perf_counter
from typing import Any, Protocol, TypeVar

from modestream_client.hits import Hit

from agents.commands.admit import DispatchCommands
from agents.context.answer import Answer
from agents.context.assemble import Assemble, AssembledContext
from agents.maps.draw_map import DrawMap
from agents.ports.clock import SteadyClock, step
from agents.ports.commands import unknown_arguments
from agents.ports.pipelines import State
from agents.retrieval.list_memories import List
from agents.retrieval.retrieve import NO_MODEL, RERANK, ROUTE, JudgeLayers, LocalRerank, NoModelAnswer, Rerank, Retrieve
from agents.rules.answer.drill_down import JudgedDepth, Layers
from agents.rules.answer.reranking import HitOrder, arrange
from schemas.failures import Rejected
from schemas.messages.assemble import AnswerRequest, AssembleRequest
from schemas.messages.commands import Command
from schemas.messages.records import Outgoing, Record
from schemas.messages.replies import ReplyWarning, SuccessReply, warn_of_unknown
from schemas.messages.retrieval import ListRequest, MapRequest, RetrieveRequest, RetrieveResult
from schemas.moments import milliseconds_of
from streams.fair_queue import FairTurns
from streams.flow.requests.channel import HandlerResult, ReplyOptions
from streams.flow.stores import UsageLog
from streams.flow.turns_log import LogEnds
from streams.foreground import Foreground
from streams.observability.metrics import Meters
from streams.partition.commit import AppliedOffsets
from streams.wire.partitioning import forward

# Retrieval with a model, where it was asked for: which layer suffices, and in which order the best hits are.
#
# Each is one call, within the question's deadline; language models are asked by users in turn. A search comes after
# each call, because memories may have changed meanwhile: what was forgotten is in no answer. Where no model can be
# asked, nothing is searched twice.

MAX_ASKED_AT_ONCE = 8
"""Questions about which models are asked at a time, four of one user: a flood of one leaves a turn to the next one."""

MAX_MODEL_TURN_S = 60.0
"""A turn ends with its question's time limit; this bounds nothing that is set sensibly."""

MIN_ORDERED_HITS = 2
"""Hits of which there is an order."""

Awaited = TypeVar("Awaited")

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
    retrieve: Retrieve
    rerank: Rerank
    local_rerank: LocalRerank
    judge_layers: JudgeLayers

    def orders_hits(self, request: RetrieveRequest) -> OrdersHits | None:
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


MAX_READ_AFTER_WAIT_S = 5.0
"""Maximum wait for `read_after` without a deadline."""

MAX_ANSWERED_AT_ONCE = 8
"""Questions that are answered at a time, four of one user: enough to fill the embedder and the event loop. More would
only wait there, and a question of another user behind them."""

MAX_TEXTS_TURN_S = 60.0
"""Maximum time of a list that reads all texts, 1 s for 50,000 of them. One at a time in a worker: many would share the
event loop's time with every question."""

LIKELY_APPLIED_S = 0.25
"""How long an offset is awaited before Kafka is asked whether it exists: nearly all are applied within."""

NOT_CAUGHT_UP = "not_caught_up"
"""The warning for an answer without the writes that it was to wait for."""

LogContext = Callable[[AssembleRequest, Record, AssembledContext], Outgoing]
"""Returns the record that says what a context is based on."""

REPLY_MARGIN_S = 0.25
"""Time reserved before a deadline, so that the answer arrives in time."""


@dataclass(frozen=True, slots=True)
class OwnWrites:
    """Waits for the writes that a request names in `read_after`."""

    progress: AppliedOffsets
    clock: SteadyClock
    foreground: Foreground
    """Where a request that waits for its caller's writes does not count: they may be a backlog."""
    ends: LogEnds | None = None
    """Tells offsets that were never given, for which nothing waits; None where turns may be hidden for a while."""

    async def wait(
        self, read_after: int | None, partition: int, boundary: str, options: ReplyOptions
    ) -> tuple[ReplyWarning, ...]:
        """Wait until the boundary's turns up to an offset are applied; return a warning if that is not in time.

        Also for an offset that was never given.
        """
        if read_after is None:
            return ()
        if self.progress.is_applied(partition, read_after, boundary):
            return ()
        with self.foreground.waiting_for_backlog():
            within = min(MAX_READ_AFTER_WAIT_S, self.time_left(options))
            soon = min(within, LIKELY_APPLIED_S)
            if await self.progress.reached(partition, read_after, soon, boundary):
                return ()
            late = (ReplyWarning(NOT_CAUGHT_UP, f"offset {read_after} of partition {partition} is not applied yet"),)
            if await self._is_beyond(partition, read_after, within - soon):
                return late
            return () if await self.progress.reached(partition, read_after, within - soon, boundary) else late

    def time_left(self, options: ReplyOptions) -> float:
        """Return the seconds until an answer must be made; infinite without a deadline."""
        return max(0.0, options.seconds_left(self.clock) - REPLY_MARGIN_S)

    async def _is_beyond(self, partition: int, offset: int, within: float) -> bool:
        if self.ends is None:
            return False
        try:
            async with asyncio.timeout(within):
                return await self.ends.is_beyond(partition, offset)
        except TimeoutError:
            return False


class AnswerQuery:
    """Handles `retrieve.v1`, `assemble.v1`, `list.v1`, `map.v1`, and the `command.v1` that only read.

    An `answer.v1` is checked, and goes on to the topic of the questions that a model is asked.
    """

    def __init__(
        self,
        retrieval_at: Callable[[int], RetrievalAgents],
        assemble_at: Callable[[int], Assemble],
        list_at: Callable[[int], List],
        draw_map_at: Callable[[int], DrawMap],
        dispatch_at: Callable[[int], DispatchCommands],
        answer_at: Callable[[int], Answer],
        asked_topic: str,
        own_writes: OwnWrites,
        meters: Meters,
        usage: UsageLog,
        context_log: LogContext | None = None,
    ) -> None:
        """Take the agents by partition; `dispatch_at` those of commands that only read.

        Without `context_log` nothing is noted of contexts.
        """
        self._context_log = context_log
        self._answer_at = answer_at
        self._asked_topic = asked_topic
        self._retrieval_at = retrieval_at
        self._assemble_at = assemble_at
        self._list_at = list_at
        self._draw_map_at = draw_map_at
        self._dispatch_at = dispatch_at
        self._own_writes = own_writes
        self._meters = meters
        self._usage = usage
        self._turns = FairTurns(MAX_ANSWERED_AT_ONCE)
        self._model_turns = FairTurns(MAX_ASKED_AT_ONCE, MAX_MODEL_TURN_S)
        self._text_turns = FairTurns(1, MAX_TEXTS_TURN_S)
        self._command_turns = FairTurns(MAX_ANSWERED_AT_ONCE)

    async def __call__(
        self,
        request: RetrieveRequest | AnswerRequest | AssembleRequest | ListRequest | MapRequest | Command,
        record: Record,
        options: ReplyOptions,
    ) -> HandlerResult:
        """Wait for the caller's own writes, then for the user's turn, and answer."""
        if isinstance(request, Command):
            # Answer a command that only reads. Writes that were answered before it was sent are applied already.
            async with self._command_turns.turn(request.scope.boundary):
                if options.is_expired(self._own_writes.clock):
                    self._meters.expired(record.topic)
                    return HandlerResult(None)
                shown = await self._dispatch_at(record.partition).handle(request, record.offset)
            # Writes of the stores are not its own, but those of the command that runs beside it.
            return HandlerResult(SuccessReply(shown.result, warn_of_unknown(unknown_arguments(request))))
        if not isinstance(request, MapRequest) and request.as_of is not None:
            # Raise Rejected for a time that lies ahead, by the clocks of the sender and of the worker.
            now_ms = milliseconds_of(self._own_writes.clock.now())
            if milliseconds_of(request.as_of) > max(now_ms, record.timestamp_ms):
                raise Rejected("invalid_value", "this time lies ahead: nothing is known of it", "as_of")
        if isinstance(request, AnswerRequest):
            answer = self._answer_at(record.partition)
            answer.check(request)
            answer.exchange(request, record)
            asked = forward(record, self._asked_topic, request.scope.boundary.encode(), record.value or b"")
            return HandlerResult(None, [asked])
        if isinstance(request, AssembleRequest):
            return await self.context(request, record, options)
        if isinstance(request, RetrieveRequest):
            reply = self._hits(self._retrieval_at(record.partition), request, record, options)
        elif isinstance(request, ListRequest):
            reply = self._reply(self._list_at(record.partition).answer, request, record, options)
        else:
            reply = self._reply(self._draw_map_at(record.partition).answer, request, record, options)
        return await self._unless_expired(reply, record)

    async def context(self, request: AssembleRequest, record: Record, options: ReplyOptions) -> HandlerResult:
        """Wait for the caller's own writes, then for the user's turn, and assemble a context."""
        reply = self._reply(self._assemble_at(record.partition).answer, request, record, options)
        assembled = await self._unless_expired(reply, record)
        context = None if assembled.answer is None else assembled.answer.result
        if not isinstance(context, AssembledContext):
            return assembled
        self._usage.asked(record, request.scope.boundary, context.modes)
        if self._context_log is None:
            return assembled
        return HandlerResult(assembled.answer, [self._context_log(request, record, context)])

    async def _unless_expired(self, reply: Awaitable[SuccessReply], record: Record) -> HandlerResult:
        try:
            return HandlerResult(await reply)
        except Expired:
            self._meters.expired(record.topic)
            return HandlerResult(None)

    async def _hits(
        self, agents: RetrievalAgents, request: RetrieveRequest, record: Record, options: ReplyOptions
    ) -> SuccessReply:
        """Decide the query, search by it, and have models and custom steps order what is found for it."""
        late: tuple[ReplyWarning, ...] | None = None

        async def search(answer: Callable[[Any], Awaitable[Any]], request: RetrieveRequest) -> SuccessReply:
            nonlocal late
            began = perf_counter()
            if late is not None:
                request = request.model_copy(update={"read_after": None})
            reply = await self._reply(answer, request, record, options)
            if isinstance(reply.result, RetrieveResult):
                self._meters.retrieve_seconds.observe(perf_counter() - began)
            if late is not None:
                return SuccessReply(reply.result, (*late, *reply.warnings))
            late = tuple(warning for warning in reply.warnings if warning.code == NOT_CAUGHT_UP)
            return reply

        warnings: tuple[ReplyWarning, ...] = ()
        if agents.retrieve.changes_query:
            received = await search(agents.retrieve.receive, request)
            # The search warns of writes that were not awaited in time.
            warnings = tuple(warning for warning in received.warnings if warning.code != NOT_CAUGHT_UP)
            assert isinstance(received.result, RetrieveRequest)
            request = received.result
        time_left = partial(self._own_writes.time_left, options)
        reply = await Question(agents, request, search, self._model_turns, time_left).answer()
        assert isinstance(reply.result, RetrieveResult)
        self._meters.usage.retrieved(request.scope.boundary, reply.result.strategy)
        self._usage.asked(record, request.scope.boundary, reply.result.modes)
        return SuccessReply(reply.result, (*warnings, *reply.warnings)) if warnings else reply

    async def _reply(
        self, answer: Callable[[Any], Awaitable[Any]], request: Any, record: Record, options: ReplyOptions
    ) -> SuccessReply:
        with step("retrieve.wait"):
            late = await self._own_writes.wait(request.read_after, record.partition, request.scope.boundary, options)
        async with self._text_turn(request), self._turns.turn(request.scope.boundary):
            # It may have passed while the question waited for its turn.
            if options.is_expired(self._own_writes.clock):
                raise Expired
            result, warnings = await answer(request)
        return SuccessReply(result, (*late, *starmap(ReplyWarning, warnings)))

    def _text_turn(self, request: Any) -> AbstractAsyncContextManager[None]:
        if isinstance(request, ListRequest) and request.reads_texts:
            return self._text_turns.turn(request.scope.boundary)
        return nullcontext()


async def _in_time(
    within_s: float, turn: AbstractAsyncContextManager[None], ask: Callable[[], Awaitable[Awaited]]
) -> Awaited:
    """Return a model's answer. Raises NoModelAnswer, also if turn and answer take longer than `within_s`."""
    try:
        async with asyncio.timeout(within_s), turn:
            return await ask()
    except TimeoutError as late:
        raise NoModelAnswer(f"the model did not answer within {within_s:.1f} s") from late
