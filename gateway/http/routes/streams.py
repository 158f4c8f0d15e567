"""Answers without an end: events, and exports."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request
from fastapi.responses import StreamingResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic_core import to_json

from gateway.http.calls import ReadCall
from gateway.http.shapes import Shapes
from gateway.service.events import Sent
from gateway.service.service import MemoryService

RETRY_MS = 2_000
"""The pause before a listener connects again."""

LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", description="The id of the last event that arrived.")]


def event_routes(service: MemoryService) -> APIRouter:
    """Return the route of events."""
    router = APIRouter(tags=["streams"])

    async def opened(call: ReadCall, last_event_id: LastEventId = None) -> AsyncIterator[Sent]:
        # A dependency: what is refused must be refused before the answer begins.
        return await service.events.open(call, last_event_id)

    @router.get(
        "/v1/users/{user_id}/events",
        operation_id="listen_to_events",
        summary="What happens to a user's memories, as server-sent events",
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
    """Return the route of exports."""
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
            # Closed with it, so that the log says at once how much was taken.
            async with aclosing(pages):
                async for page in pages:
                    yield b"".join(to_json(turn) + b"\n" for turn in page)

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    return router
