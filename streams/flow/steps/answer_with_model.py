"""`answer.v1`: a language model answers a question from memory, and both become turns.

Questions come from a topic of their own, because a model takes seconds: on that of the searches they would take their
places. The context comes first, so that the question is no memory of its own; then the question is published as a turn,
the model is asked, and its answer is published when it is whole. A request that is delivered again, also while it is
under way, is answered by what is stored: the ids of its turns come from its record. Users take turns at the model.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from modestream_client.contexts import AnswerResult, AssembleResult
from pydantic_core import to_json

from agents.context.answer import PROFILE_FIELD, Answer, Exchange, answer_turns, digest_of, question_turn
from agents.ports.clock import step
from agents.rules.access.grants import PRINCIPAL_HEADER
from schemas.failures import Rejected, Unavailable
from schemas.messages.assemble import AnswerRequest
from schemas.messages.records import Outgoing, Record
from schemas.messages.replies import SuccessReply, encode_partial
from schemas.models.language import Unanswerable
from streams.fair_queue import FairTurns
from streams.flow.publisher import await_all
from streams.flow.requests.channel import HandlerResult, Replies, ReplyOptions
from streams.flow.steps.answer import REPLY_MARGIN_S
from streams.flow.turns_log import TakenTurns
from streams.flow.worker_context import WorkerContext
from streams.observability.tracing import carried_headers
from streams.wire.partitioning import original_record

MAX_ASKED_AT_ONCE = 16
"""Questions about which models are asked at a time, eight of one user; each profile has a limit of its own."""

MAX_WAITING_OF_USER = 100
"""Questions of one user that wait in a worker: more would take the places of others'."""

MAX_ANSWER_S = 300.0
"""Seconds of an answer without a deadline, its wait for a turn included."""

MAX_CATCH_UP_S = 2.0
"""Maximum wait for turns of the user that are written and not applied: before for those that a worker may have written
that had the partition earlier, and at the end for the question's own."""

KEPT_S = 60.0
"""How long an answer that was not to be stored is kept for another delivery of its request."""

PARTIAL_INTERVAL_S = 0.03
"""Between two partial replies; what the model says meanwhile goes together."""

STREAM_HEADER = "stream"
"""A request with this header, `1`, gets partial replies."""

AssembleContext = Callable[[AnswerRequest, Record, ReplyOptions], Awaitable[HandlerResult]]
"""Assembles a context, in a turn of the request's user; without an answer once its deadline is over."""


class AnswerWithModel:
    """Requests in, answers out. One in a worker."""

    def __init__(
        self,
        answer_at: Callable[[int], Answer],
        assemble: AssembleContext,
        taken: TakenTurns | None,
        ctx: WorkerContext,
    ) -> None:
        self._answer_at = answer_at
        self._assemble = assemble
        self._taken = taken
        self._ctx = ctx
        self._turns = FairTurns(MAX_ASKED_AT_ONCE, MAX_ANSWER_S)
        self._waiting: Counter[str] = Counter()
        self._under_way: dict[str, asyncio.Task[HandlerResult]] = {}

    async def __call__(self, request: AnswerRequest, record: Record, options: ReplyOptions) -> HandlerResult:
        """Answer a question. Raises Rejected."""
        answer, boundary = self._answer_at(record.partition), request.scope.boundary
        if request.response_format is None:
            answer.check(request)
        else:
            # Beside other requests: a schema may take a second.
            await asyncio.to_thread(answer.check, request)
        exchange = answer.exchange(request, original_record(record))
        digest = digest_of(original_record(record))
        if (under_way := self._under_way.get(digest)) is not None:
            return await asyncio.shield(under_way)
        if self._waiting[boundary] >= MAX_WAITING_OF_USER:
            message = "too many questions of this user wait for the language model; ask again later"
            raise Rejected("unavailable", message, PROFILE_FIELD)
        self._waiting[boundary] += 1
        making = self._made(answer, request, record, options, exchange)
        under_way = self._under_way[digest] = asyncio.create_task(making)
        try:
            return await under_way
        finally:
            self._waiting[boundary] -= 1
            if not self._waiting[boundary]:
                del self._waiting[boundary]
            kept_s = KEPT_S if exchange is None and not under_way.cancelled() and not under_way.exception() else 0.0
            asyncio.get_running_loop().call_later(kept_s, self._under_way.pop, digest, None)

    async def _made(
        self, answer: Answer, request: AnswerRequest, record: Record, options: ReplyOptions, exchange: Exchange | None
    ) -> HandlerResult:
        time_left_s = min(MAX_ANSWER_S, options.seconds_left(self._ctx.clock) - REPLY_MARGIN_S)
        ends = asyncio.get_running_loop().time() + time_left_s
        stored = None
        if exchange is not None:
            if self._taken is not None:
                within_s = min(MAX_CATCH_UP_S, time_left_s)
                with suppress(TimeoutError, Unavailable):
                    async with asyncio.timeout(within_s):
                        await self._taken.applied(record.partition, request.scope.boundary, within_s)
            stored = answer.before(exchange)
        asked = answer.context_request(request, stored)
        if exchange is not None and stored is not None:
            assembled = await self._assemble(asked, record, options)
            if assembled.answer is None:
                return assembled
            assert isinstance(assembled.answer.result, AssembleResult)
            again = answer.again(request, stored, assembled.answer.result, exchange)
            return HandlerResult(SuccessReply(again, assembled.answer.warnings))
        first = [] if exchange is None else [question_turn(request, exchange)]
        turns = TurnsToStore(self._ctx, record, request.scope.boundary, first)
        try:
            async with asyncio.timeout_at(ends), self._turns.turn(request.scope.boundary):
                assembled = await self._assemble(asked, record, options)
                if assembled.answer is None:
                    return assembled
                assert isinstance(assembled.answer.result, AssembleResult)
                await turns.publish(logged=assembled.events)
                with step("retrieve.answer"):
                    result = await self._asked(answer, request, assembled.answer.result, record, options)
        except (TimeoutError, NoAnswer) as problem:
            await turns.publish()
            await turns.until_written()
            reason = str(problem) or "the language model did not answer in time"
            raise Rejected("unavailable", reason, PROFILE_FIELD) from problem
        if exchange is not None:
            result.stored = exchange.stored
            await turns.publish(answer_turns(request, exchange, result, self._ctx.clock.now()))
        await turns.until_written()
        if exchange is not None:
            # So that a read that follows finds them.
            within_s = min(MAX_CATCH_UP_S, ends - asyncio.get_running_loop().time())
            await self._ctx.progress.until(record.partition, lambda: answer.before(exchange) is not None, within_s)
        return HandlerResult(SuccessReply(result, assembled.answer.warnings))

    async def _asked(
        self, answer: Answer, request: AnswerRequest, context: AssembleResult, record: Record, options: ReplyOptions
    ) -> AnswerResult:
        """Return the model's answer. Raises NoAnswer."""
        try:
            if options.address is None or record.header(STREAM_HEADER) != b"1":
                return await answer.ask(request, context, None)
            async with PartialReplies(self._ctx.replies, record, options) as partial:
                return await answer.ask(request, context, partial.take)
        except (Unavailable, Unanswerable) as problem:
            raise NoAnswer(str(problem)) from problem


class NoAnswer(Exception):
    """The model gave no answer; the message says why."""


class TurnsToStore:
    """The turns of one exchange on their way to the log of turns, in their order."""

    def __init__(self, ctx: WorkerContext, record: Record, boundary: str, first: Iterable[Mapping[str, Any]]) -> None:
        """Take the request's record, whose sender writes the turns, and those to be published `first`."""
        self._publisher = ctx.publisher
        self._topic = ctx.topics.turns
        self._key = boundary.encode()
        self._sender = tuple(pair for pair in record.headers if pair[0] == PRINCIPAL_HEADER)
        self._first = list(first)
        self._writes: list[Awaitable[None]] = []

    async def publish(self, turns: Iterable[Mapping[str, Any]] = (), logged: Iterable[Outgoing] = ()) -> None:
        """Publish the first turns, unless they are, and then these; `logged` is the record of their context."""
        self._writes += [await self._publisher.send(out) for out in logged]
        first, self._first = self._first, []
        for turn in (*first, *turns):
            out = Outgoing(self._topic, self._key, to_json(turn), (*carried_headers(), *self._sender))
            self._writes.append(await self._publisher.send(out))

    async def until_written(self) -> None:
        """Wait until Kafka has all of them."""
        writes, self._writes = self._writes, []
        await await_all(writes)


class PartialReplies:
    """The pieces of an answer as partial replies, in their order: each is written before the next one is sent.

    What comes meanwhile goes together. They may be lost: where the topic of the replies is slow, they end.
    """

    def __init__(self, replies: Replies, record: Record, options: ReplyOptions) -> None:
        self._replies = replies
        self._record = record
        self._options = options
        self._text = ""
        self._heard = asyncio.Event()

    def take(self, piece: str) -> None:
        self._text += piece
        self._heard.set()

    async def __aenter__(self) -> Self:
        self._sending = asyncio.create_task(self._send())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; the final reply has all of the text."""
        self._sending.cancel()
        await asyncio.wait({self._sending})

    async def _send(self) -> None:
        number = 0
        while True:
            await self._heard.wait()
            self._heard.clear()
            text, self._text = self._text, ""
            value = encode_partial(number, text)
            for writing in await self._replies.reply(self._record, self._options.address, value):
                if not await writing:
                    return
            number += 1
            await asyncio.sleep(PARTIAL_INTERVAL_S)
