"""Modes: list, declare, rename, delete, default, suggestions."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from gateway.http.calls import ManageCall, PathName, ReadCall
from gateway.http.contract import Shapes
from gateway.service.service import MemoryService


def mode_routes(service: MemoryService, shapes: Shapes) -> APIRouter:
    """Return the routes about modes."""
    router = APIRouter(tags=["modes"])
    path = "/v1/users/{user_id}/modes"

    @router.get(path, operation_id="list_modes", summary="List modes", openapi_extra=shapes.project.openapi())
    async def list_modes(request: Request, call: ReadCall) -> JSONResponse:
        return JSONResponse(await service.modes.list(call, shapes.project.read(request).scope))

    @router.put(
        path + "/{name}",
        operation_id="declare_mode",
        summary="Declare or update a mode",
        openapi_extra=shapes.mode.openapi(),
    )
    async def declare_mode(request: Request, call: ManageCall, name: PathName) -> JSONResponse:
        scope, fields = await shapes.mode.read(request)
        return JSONResponse(await service.modes.declare(call, scope, name, fields))

    @router.post(
        path + "/{name}/rename",
        operation_id="rename_mode",
        summary="Rename a mode; its memories follow",
        openapi_extra=shapes.new_name.openapi(),
    )
    async def rename_mode(request: Request, call: ManageCall, name: PathName) -> JSONResponse:
        scope, fields = await shapes.new_name.read(request)
        return JSONResponse(await service.modes.rename(call, scope, name, fields["new_name"]))

    @router.delete(
        path + "/{name}",
        operation_id="delete_mode",
        summary="Delete a mode; its memories are forgotten or moved",
        openapi_extra=shapes.mode_removal.openapi(),
    )
    async def delete_mode(request: Request, call: ManageCall, name: PathName) -> JSONResponse:
        scope, fields = shapes.mode_removal.read(request)
        return JSONResponse(await service.modes.delete(call, scope, name, fields["memories"]))

    @router.put(
        "/v1/users/{user_id}/default-mode",
        operation_id="set_default_mode",
        summary="Set or clear the default mode",
        openapi_extra=shapes.default_mode.openapi(),
    )
    async def set_default_mode(request: Request, call: ManageCall) -> JSONResponse:
        scope, fields = await shapes.default_mode.read(request)
        return JSONResponse(await service.modes.set_default(call, scope, fields))

    @router.get(
        "/v1/users/{user_id}/mode-suggestions",
        operation_id="suggest_modes",
        summary="Groups of turns that fit no mode",
        openapi_extra=shapes.project.openapi(),
    )
    async def suggest_modes(request: Request, call: ReadCall) -> JSONResponse:
        return JSONResponse(await service.modes.suggest(call, shapes.project.read(request).scope))

    return router
