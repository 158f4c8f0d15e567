"""One memory, and what is to be forgotten."""

from collections.abc import Mapping

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from modestream_client.hits import WholeMemory
from modestream_client.operations import SET_INTERACTION_MODE, SET_MEMORY_MODE, SET_MEMORY_VISIBILITY, Operation

from gateway.http.calls import ManageCall, PathName, ReadCall
from gateway.http.contract import Shapes
from gateway.service.calls import Call
from gateway.service.failures import Refused
from gateway.service.service import MemoryService
from gateway.service.wire import Json

CHANGES: Mapping[str, Operation[WholeMemory] | None] = {
    "mode": SET_MEMORY_MODE,
    "text": None,
    "interaction_mode": SET_INTERACTION_MODE,
}
"""Fields that are a change, and its command; another text is another turn."""

FILTERS = ("searchable", "private")
"""Fields that are one change together."""


def memory_routes(service: MemoryService, shapes: Shapes) -> APIRouter:
    """Return the routes about one memory."""
    router = APIRouter(tags=["memories"])
    path = "/v1/users/{user_id}/memories/{memory_id}"

    @router.get(path, operation_id="get_memory", summary="Show a memory", openapi_extra=shapes.projects.openapi())
    async def get_memory(request: Request, call: ReadCall, memory_id: PathName) -> JSONResponse:
        scope, _ = shapes.projects.read(request)
        return JSONResponse(await service.memories.get(call, scope, memory_id))

    @router.patch(
        path,
        operation_id="change_memory",
        summary="Move a memory, edit its text, correct what it is for, or filter it",
        openapi_extra=shapes.memory_change.openapi(),
    )
    async def change_memory(request: Request, call: ReadCall, memory_id: PathName) -> JSONResponse:
        scope, fields = await shapes.memory_change.read(request)
        return JSONResponse(await _changed(service, call, scope, memory_id, fields))

    @router.delete(
        path,
        operation_id="forget_memory",
        summary="Forget a memory and what derives from it",
        openapi_extra=shapes.project.openapi(),
    )
    async def forget_memory(request: Request, call: ManageCall, memory_id: PathName) -> JSONResponse:
        scope, _ = shapes.project.read(request)
        return JSONResponse(await service.memories.forget(call, scope, memory_id))

    return router


def forget_routes(service: MemoryService, shapes: Shapes) -> APIRouter:
    """Return the routes that forget much at once; each needs the name again."""
    router = APIRouter(tags=["memories"])
    document = shapes.confirmed.openapi()

    @router.delete(
        "/v1/users/{user_id}/conversations/{conversation_id}",
        operation_id="forget_conversation",
        summary="Forget a conversation",
        openapi_extra=document,
    )
    async def forget_conversation(request: Request, call: ManageCall, conversation_id: PathName) -> JSONResponse:
        scope, fields = shapes.confirmed.read(request)
        _require_same(fields["confirm"], conversation_id)
        what = {"conversation_id": conversation_id}
        return JSONResponse(await service.memories.forget_all(call, scope, what))

    @router.delete(
        "/v1/users/{user_id}/projects/{project_id}",
        operation_id="forget_project",
        summary="Forget a project",
        openapi_extra=_without_project(document),
    )
    async def forget_project(request: Request, call: ManageCall, project_id: PathName) -> JSONResponse:
        scope, fields = shapes.confirmed.read(request)
        _require_same(fields["confirm"], project_id)
        forgotten = await service.memories.forget_all(call, {**scope, "project_id": project_id}, {"project": True})
        return JSONResponse(forgotten)

    @router.delete(
        "/v1/users/{user_id}",
        operation_id="forget_user",
        summary="Forget a user, in all projects",
        openapi_extra=document,
    )
    async def forget_user(request: Request, call: ManageCall) -> JSONResponse:
        scope, fields = shapes.confirmed.read(request)
        _require_same(fields["confirm"], call.user_id)
        return JSONResponse(await service.memories.forget_all(call, scope, {"user": True}))

    return router


async def _changed(service: MemoryService, call: Call, scope: Json, memory_id: str, fields: Json) -> Json:
    named = [name for name in CHANGES if fields.get(name) is not None]
    filters = {name: fields[name] for name in FILTERS if fields.get(name) is not None}
    if len(named) + bool(filters) != 1:
        message = "give exactly one of `mode`, `text` and `interaction_mode`, or of `searchable` and `private` any"
        raise Refused("invalid_value", message, (named or list(CHANGES))[0])
    if filters:
        return await service.memories.change(SET_MEMORY_VISIBILITY, call, scope, memory_id, filters)
    [name] = named
    if (operation := CHANGES[name]) is None:
        return await service.memories.edit(call, scope, memory_id, fields[name])
    return await service.memories.change(operation, call, scope, memory_id, {name: fields[name]})


def _require_same(confirm: str, name: str) -> None:
    if confirm != name:
        raise Refused("invalid_value", "to forget all of it, give its name again as `confirm`", "confirm")


def _without_project(document: Json) -> Json:
    """The project is in the path."""
    return {"parameters": [one for one in document["parameters"] if one["name"] != "project_id"]}
