"""Ask the deployment's language model a question about memories: a whole answer, or pieces as they are written."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Any, TypedDict, TypeVar, Unpack

from modestream_client.answers import Answered, ChatMessage, StreamedText, answered_of
from modestream_client.calls.session import ScopeSelector, Session, UserId
from modestream_client.operations import ANSWER
from modestream_client.transport import OWN_WRITES, OnPartial, ReadAfter
from modestream_client.vocabulary import ContextFormat, InteractionMode

ANSWER_TIMEOUT_S = 60.0
"""A model takes seconds, and more for a long answer; the gateway waits no longer."""

AnswerT = TypeVar("AnswerT")

NAMES_ON_THE_WIRE = {"context_format": "format", "examples": "messages"}


class AnswerOptions(TypedDict, total=False):
    """Keywords of both calls.

    `conversation_id` (`"default"`): its last turns are in the context, and with `store` (True) question and answer
    become turns of it. `profile`: one of the language models. `response_format`: a JSON Schema that the answer
    satisfies, `{"type": "json_schema", "json_schema": {"name", "schema"}}`. `stop`: up to four texts that end the
    answer. `max_tokens` and `temperature` default to the profile's values, `timeout` to 60 s. All other arguments are
    as in `assemble`.
    """

    conversation_id: str | None
    store: bool
    profile: str | None
    response_format: Mapping[str, Any] | None
    stop: Sequence[str] | None
    max_tokens: int | None
    temperature: float | None
    budget_tokens: int
    reserve_tokens: int
    context_format: ContextFormat
    min_score: float | None
    interaction_mode: InteractionMode | None
    intent: str | None
    system_prompt: str | None
    examples: Sequence[ChatMessage]
    prefix: str | None
    suffix: str | None
    question_prefix: str | None
    question_suffix: str | None
    remember: Sequence[ChatMessage]
    pins: Sequence[str]
    filters: Mapping[str, Any] | None
    as_of: datetime | str | None
    mode: str | Sequence[str] | None
    read_after: ReadAfter
    user_id: UserId | None
    projects: str | Sequence[str] | None
    scope: ScopeSelector | None
    principal: str | None
    timeout: float | None


async def in_pieces(
    ask: Callable[[OnPartial], Coroutine[Any, Any, AnswerT]], text_of: Callable[[AnswerT], str]
) -> AsyncGenerator[str | AnswerT, None]:
    """Yield the pieces of an answer's text as they come, and then the answer, or raise the errors of `ask`.

    Joined, the pieces are the text: lost pieces are sent again before the answer.
    """
    heard: asyncio.Queue[str | None] = asyncio.Queue()
    text = StreamedText()

    def take(number: int, piece: str) -> None:
        if text.take(number, piece):
            heard.put_nowait(piece)

    asking = asyncio.create_task(ask(take))
    asking.add_done_callback(lambda _: heard.put_nowait(None))
    try:
        while (piece := await heard.get()) is not None:
            yield piece
        answer = await asking
        if rest := text.rest_of(text_of(answer)):
            yield rest
        yield answer
    finally:
        asking.cancel()
        await asyncio.wait({asking})


class AnsweringCalls(Session):
    """Calls that have the service's language model answer questions."""

    async def answer(self, query: str, **options: Unpack[AnswerOptions]) -> Answered:
        """Return the answer of the service's language model to a question, from memory.

            answered = await memory.answer("Where is the spare key?", conversation_id="c1")
            print(answered.text, answered.references)

        Raises `MemoryServiceError` with code `unavailable` if the service has no language model, or that gives no
        answer; the question is then stored without an answer.
        """
        return await self._answered(query, options, None)

    async def answer_stream(self, query: str, **options: Unpack[AnswerOptions]) -> AsyncIterator[str | Answered]:
        """Yield the pieces of an answer's text as they come, and then the result of `answer`.

            async for piece in memory.answer_stream("Where is the spare key?", conversation_id="c1"):
                if isinstance(piece, str):
                    print(piece, end="", flush=True)

        Joined, the pieces are the whole text.
        """
        asking = partial(self._answered, query, options)
        async with aclosing(in_pieces(asking, attrgetter("text"))) as pieces:
            async for piece in pieces:
                yield piece

    async def _answered(self, query: str, options: AnswerOptions, on_partial: OnPartial | None) -> Answered:
        fields: dict[str, Any] = {"conversation_id": "default", **options}
        [user] = self._users(fields.pop("user_id", None))
        timeout = fields.pop("timeout", None)
        principal = fields.pop("principal", None)
        scope = self._selector(user, fields.pop("projects", None), fields.pop("scope", None))
        after = await self._transport.resolve_read_after(user, fields.pop("read_after", OWN_WRITES))
        named = {NAMES_ON_THE_WIRE.get(name, name): value for name, value in fields.items()}
        record = ANSWER.record_of(scope, {"query": query, **named, "read_after": after})
        reply, _ = await self._transport.request(
            ANSWER.topic,
            record,
            principal=principal,
            timeout=ANSWER_TIMEOUT_S if timeout is None else timeout,
            deadline=True,
            on_partial=on_partial,
        )
        return answered_of(reply)
