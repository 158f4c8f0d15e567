"""Streamed answers: the language model's, and, without an end, events and exports."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial
from http import HTTPStatus
from operator import itemgetter
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request
from fastapi.responses import Response, StreamingResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent, format_sse_event
from modestream_client.calls.answering import in_pieces
from pydantic_core import to_json

from gateway.http.calls import JSONAnswer, ReadCall
from gateway.http.problems import problem_body, request_id_of
from gateway.http.shapes import Shapes
from gateway.service.calls import Json, Refused, failed
from gateway.service.events import Sent
from gateway.service.service import MemoryService

RETRY_MS = 2_000
"""Pause before a listener reconnects."""

LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", description="The id of the last event that arrived.")]


log = logging.getLogger(__name__)

UNBUFFERED = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Header fields of a stream: no proxy may hold pieces back."""


def answer_routes(service: MemoryService, shapes: Shapes) -> APIRouter:
    router = APIRouter(tags=["reads"])

    @router.post(
        "/v1/users/{user_id}/answers",
        operation_id="answer",
        summary="Have the language model answer a question from memory, whole or in parts",
        openapi_extra=shapes.answer.openapi(),
    )
    async def answer(request: Request, call: ReadCall) -> Response:
        scope, fields = await shapes.answer.read(request)
        if not fields.pop("stream", False):
            return JSONAnswer(await service.operations.answer(call, scope, fields))
        asking = partial(service.operations.answer, call, scope, fields)
        events = _answer_events(in_pieces(asking, itemgetter("text")), request_id_of(request))
        # Refuse before the answer begins.
        first = await anext(events)

        async def stream() -> AsyncIterator[bytes]:
            async with aclosing(events):
                yield first
                async for event in events:
                    yield event

        return EventSourceResponse(stream(), headers=UNBUFFERED)

    return router


async def _answer_events(pieces: AsyncIterator[str | Json], request_id: str) -> AsyncGenerator[bytes, None]:
    """Yield `delta` events, then one `done`, or one `error`. Raises Refused for a contradictory request."""
    has_begun = False
    try:
        async for piece in pieces:
            event, data = ("delta", {"text": piece}) if isinstance(piece, str) else ("done", piece)
            yield _event(event, data)
            has_begun = True
    except Refused as refused:
        problem = problem_body(refused, request_id)
        if not has_begun and problem["status"] < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        yield _event("error", problem)
    except Exception:
        log.exception("request %s failed", request_id)
        yield _event("error", problem_body(failed(), request_id))


def _event(event: str, data: Json) -> bytes:
    # In ASCII: many readers take Unicode's line ends for ends of lines.
    return format_sse_event(event=event, data_str=to_json(data, inf_nan_mode="null", ensure_ascii=True).decode())


def event_routes(service: MemoryService) -> APIRouter:
    router = APIRouter(tags=["streams"])

    async def opened(call: ReadCall, last_event_id: LastEventId = None) -> AsyncIterator[Sent]:
        # A dependency, to refuse before the answer begins.
        return await service.events.open(call, last_event_id)

    @router.get(
        "/v1/users/{user_id}/events",
        operation_id="listen_to_events",
        summary="Events of a user's memories, as server-sent events",
        response_class=EventSourceResponse,
    )
    async def listen_to_events(
        events: Annotated[AsyncIterator[Sent], Depends(opened)],
    ) -> AsyncIterator[ServerSentEvent]:
        async for sent in events:
            if sent.event == "opened":
                yield ServerSentEvent(id=sent.id, retry=RETRY_MS, comment="listening")
            elif isinstance(sent.event, str):
                yield ServerSentEvent(id=sent.id, event=sent.event, data={"type": sent.event})
            else:
                yield ServerSentEvent(id=sent.id, event=sent.event.type, data=sent.event.as_json())

    return router


def export_routes(service: MemoryService, shapes: Shapes) -> APIRouter:
    router = APIRouter(tags=["streams"])

    @router.get(
        "/v1/users/{user_id}/export",
        operation_id="export_turns",
        summary="All turns as JSON lines of turn.v1",
        openapi_extra=shapes.export.openapi(),
    )
    async def export_turns(request: Request, call: ReadCall) -> StreamingResponse:
        scope, fields = shapes.export.read(request)
        everywhere = {**dict.fromkeys(shapes.scope_fields, "*"), **scope}
        pages = await service.export.turns(call, everywhere, fields)

        async def lines() -> AsyncIterator[bytes]:
            # Closed with it, so that the log shows at once how much was sent.
            async with aclosing(pages):
                async for page in pages:
                    yield b"".join(to_json(turn) + b"\n" for turn in page)

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    return router
