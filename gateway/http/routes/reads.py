"""Questions: search, contexts, lists, maps."""

from typing import get_args

from fastapi import APIRouter, Request

from gateway.http.calls import ReadCall
from gateway.http.contract import Shapes
from gateway.http.json_answer import JSONAnswer
from gateway.service.reads import Listed
from gateway.service.service import MemoryService

LISTS: tuple[Listed, ...] = get_args(Listed)


def read_routes(service: MemoryService, shapes: Shapes) -> APIRouter:
    """Return the routes that ask."""
    router = APIRouter(tags=["reads"])

    @router.post(
        "/v1/users/{user_id}/memories/search",
        operation_id="search_memories",
        summary="Search memories, best first",
        openapi_extra=shapes.search.openapi(),
    )
    async def search_memories(request: Request, call: ReadCall) -> JSONAnswer:
        sent = await shapes.search.read(request)
        return JSONAnswer(await service.reads.search(call, sent.scope, sent.fields))

    @router.post(
        "/v1/users/{user_id}/contexts",
        operation_id="assemble_context",
        summary="Assemble a prompt within a token budget",
        openapi_extra=shapes.context.openapi(),
    )
    async def assemble_context(request: Request, call: ReadCall) -> JSONAnswer:
        sent = await shapes.context.read(request)
        return JSONAnswer(await service.reads.assemble(call, sent.scope, sent.fields))

    for what in LISTS:
        _add_list(router, service, shapes, what)

    @router.get(
        "/v1/users/{user_id}/map",
        operation_id="get_map",
        summary="Where memories lie in a plane, by vector space",
        openapi_extra=shapes.map.openapi(),
    )
    async def get_map(request: Request, call: ReadCall) -> JSONAnswer:
        sent = shapes.map.read(request)
        return JSONAnswer(await service.reads.map(call, sent.scope, sent.fields))

    return router


def _add_list(router: APIRouter, service: MemoryService, shapes: Shapes, what: Listed) -> None:
    @router.get(
        f"/v1/users/{{user_id}}/{what}",
        operation_id=f"list_{what}",
        summary=f"List {what}, page by page",
        openapi_extra=shapes.list.openapi(),
    )
    async def list_page(request: Request, call: ReadCall) -> JSONAnswer:
        sent = shapes.list.read(request)
        return JSONAnswer(await service.reads.list(call, what, sent.scope, sent.fields))
