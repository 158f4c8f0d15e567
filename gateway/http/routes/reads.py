"""Questions: search, contexts, lists, maps."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from gateway.http.calls import UserCall
from gateway.http.contract import Shapes
from gateway.service.service import MemoryService


def read_routes(service: MemoryService, shapes: Shapes) -> APIRouter:
    """Return the routes that ask."""
    router = APIRouter(tags=["reads"])

    @router.post(
        "/v1/users/{user_id}/memories/search",
        operation_id="search_memories",
        summary="Search memories, best first",
        openapi_extra=shapes.search.openapi(),
    )
    async def search_memories(request: Request, call: UserCall) -> JSONResponse:
        sent = await shapes.search.read(request)
        return JSONResponse(await service.reads.search(call, sent.scope, sent.fields))

    @router.post(
        "/v1/users/{user_id}/contexts",
        operation_id="assemble_context",
        summary="Assemble a prompt within a token budget",
        openapi_extra=shapes.context.openapi(),
    )
    async def assemble_context(request: Request, call: UserCall) -> JSONResponse:
        sent = await shapes.context.read(request)
        return JSONResponse(await service.reads.assemble(call, sent.scope, sent.fields))

    return router
