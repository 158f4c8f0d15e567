"""The routes under `/openai/v1`: OpenAI's interface in front of a provider, with memory.

Refusals of this gateway have OpenAI's shape, which its clients show; the provider's answers pass unchanged.
"""

import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.http.calls import caller_of
from gateway.http.problems import MEDIA_TYPE, problem, request_id_of
from gateway.http.shapes import parsed
from gateway.openai.chat import AnswerReader, Chat, StreamedAnswer, WholeAnswer
from gateway.openai.memory import PREFIX, READ_AS, ChatMemory, Exchange, Outbox, Wishes
from gateway.openai.provider import Passing, Provider, Relay
from gateway.service.calls import Refused, failed
from gateway.service.meters import Meters
from gateway.service.service import MemoryService

log = logging.getLogger(__name__)

PATH = "/openai/"

OWN_TYPE = "urn:modestream:error:"
"""Prefix of the `type` of this gateway's own problems."""

KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}

COMPLETIONS, MODELS = "/chat/completions", "/models"

ABOUT = {
    "user": "The memories' user, for a key without one. Default: the body's `user`.",
    "conversation": "The conversation's name. Else it is derived from its beginning.",
    "project": "The project to recall from and to store in.",
    "mode": "The mode to recall from and to store in.",
    "budget": "Tokens that memories may take: 2,000 without it.",
    "wait": "Seconds that memories may take: 1 without it.",
    "store": "`false`: nothing of this call becomes a memory.",
}
"""Descriptions of the header fields in the document."""


class StoredExchange(Passing):
    """Makes turns of a question, once the provider answers, and of its complete answer.

    A caller that knows that it has all of an answer may hang up: it is stored before the last bytes go out.
    """

    def __init__(self, memory: ChatMemory, exchange: Exchange) -> None:
        self._memory = memory
        self._exchange = exchange
        self._reader: AnswerReader = WholeAnswer()
        self._is_stored = False

    def begin(self, headers: Mapping[str, str]) -> None:
        is_streamed = headers.get("content-type", "").startswith("text/event-stream")
        # The length of a compressed answer is not that of its bytes here.
        length = None if "content-encoding" in headers else headers.get("content-length")
        self._reader = StreamedAnswer() if is_streamed else WholeAnswer(length)
        with self._guarded():
            self._memory.store_question(self._exchange)

    def feed(self, piece: bytes) -> None:
        with self._guarded():
            self._reader.feed(piece)
        if self._reader.is_whole:
            self.end()

    def end(self) -> None:
        if self._is_stored:
            return
        self._is_stored = True
        with self._guarded():
            if (text := self._reader.text()) is not None:
                self._memory.store_answer(self._exchange, text)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Continue after a defect of ours: it must not cost the call."""
        try:
            yield
        except Exception:
            log.exception("request %s is not stored", self._exchange.request_id)


class OpenAiDoor:
    """Its routes, and a context for the time that they are served."""

    def __init__(self, service: MemoryService, provider: Provider, outbox: Outbox, meters: Meters) -> None:
        self._service = service
        self._provider = provider
        self._outbox = outbox
        self.routes = _routes(ChatMemory(service, outbox, meters), provider).routes

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep connections to the provider, and send waiting turns, while the block runs."""
        async with self._provider.running(), self._outbox.sending(self._service.turns.publish):
            yield


def _routes(memory: ChatMemory, provider: Provider) -> APIRouter:
    router = APIRouter(prefix="/openai/v1", tags=["openai"])

    async def complete(request: Request) -> Response:
        provider.require()
        wishes = Wishes.of(request.headers)
        chat = await parsed(await request.body(), Chat)
        caller = caller_of(request)
        user = caller.own_user or wishes.user or chat.user
        if user is None:
            message = "name the user in the header x-modestream-user, or the body's `user`: this key has none"
            raise Refused("invalid_value", message, "user")
        exchange = Exchange(
            caller=caller,
            user_id=user,
            request_id=request_id_of(request),
            wishes=wishes,
            conversation_id=wishes.conversation or chat.derived_conversation,
            question=chat.question,
            began=datetime.now(UTC),
        )
        recalled = await memory.recall(exchange, chat.shown)
        body = chat.body
        if recalled.messages:
            body = await parsed(body, lambda _: chat.with_messages(recalled.messages))
        more = {b"x-modestream-memory": b"used" if recalled.is_available else b"unavailable"}
        if recalled.context_id is not None:
            more[b"x-modestream-context"] = recalled.context_id.encode()
        asking = partial(provider.send, "POST", COMPLETIONS, request.headers.raw, body)
        return Relay(asking, more, StoredExchange(memory, exchange))

    async def list_models(request: Request) -> Response:
        provider.require()
        return Relay(partial(provider.send, "GET", MODELS, request.headers.raw, None))

    router.add_api_route(
        COMPLETIONS,
        complete,
        methods=["POST"],
        operation_id="create_chat_completion",
        summary="Ask the provider, with memories, and remember",
        responses=_answers("The provider's answer, as it is; a stream where `stream` is true."),
        openapi_extra=_document(),
    )
    router.add_api_route(
        MODELS,
        list_models,
        methods=["GET"],
        operation_id="list_models",
        summary="List the provider's models",
        responses=_answers("The provider's answer, as it is."),
    )
    return router


def _answers(description: str) -> dict[int | str, dict[str, Any]]:
    error = {"message": "…", "type": "invalid_request_error", "param": None, "code": "invalid_value"}
    schema = {"type": "object", "properties": {"error": {"type": "object"}}, "required": ["error"]}
    return {
        200: {"description": description},
        "default": {
            "description": "An error, in OpenAI's shape.",
            "content": {"application/json": {"schema": schema, "example": {"error": error}}},
        },
    }


def _document() -> dict[str, Any]:
    fields = [
        {
            "name": PREFIX + name,
            "in": "header",
            "required": False,
            "description": ABOUT[name],
            "schema": {"type": "string"},
        }
        for name in READ_AS
    ]
    schema = {
        "type": "object",
        "description": "A request of OpenAI's interface; every field reaches the provider.",
        "properties": {"model": {"type": "string"}, "messages": {"type": "array", "items": {"type": "object"}}},
    }
    return {
        "parameters": fields,
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
    }


class OpenAiErrors:
    """ASGI middleware: rewrites problems."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PATH):
            await self._app(scope, receive, send)
            return
        held: Message | None = None
        has_begun = False

        async def send_rewritten(message: Message) -> None:
            nonlocal held, has_begun
            has_begun = True
            if message["type"] == "http.response.start":
                kind = Headers(raw=message["headers"]).get("content-type", "")
                if kind.startswith(MEDIA_TYPE):
                    held = message
                    return
            if held is not None:
                start, held = held, None
                if not message.get("more_body", False) and (body := _rewritten(message["body"])) is not None:
                    headers = MutableHeaders(scope=start)
                    headers["content-type"], headers["content-length"] = "application/json", str(len(body))
                    message = {**message, "body": body}
                await send(start)
            await send(message)

        try:
            await self._app(scope, receive, send_rewritten)
        except Exception:
            if has_begun:
                raise
            log.exception("request %s failed", scope["request_id"])
            await problem(failed(), scope["request_id"])(scope, receive, send_rewritten)


def _rewritten(body: bytes) -> bytes | None:
    """Return a problem in OpenAI's shape; None for a response that is not a problem."""
    try:
        told: Any = json.loads(body)
        if not told["type"].startswith(OWN_TYPE):
            return None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    status = told["status"]
    usual = "server_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error"
    error = {"message": told["detail"], "type": KINDS.get(status, usual), "param": told["field"], "code": told["code"]}
    return json.dumps({"error": error}).encode()
