"""Categories, the intention, and the health of a user's part."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from gateway.http.calls import ManageCall, PathName, ReadCall
from gateway.http.contract import Shapes
from gateway.service.service import MemoryService


def category_routes(service: MemoryService, shapes: Shapes) -> APIRouter:
    """Return the routes about categories."""
    router = APIRouter(tags=["layers"])
    path = "/v1/users/{user_id}/categories"
    project = shapes.project.openapi()

    @router.get(
        path, operation_id="list_categories", summary="List categories", openapi_extra=shapes.categories.openapi()
    )
    async def list_categories(request: Request, call: ReadCall) -> JSONResponse:
        scope, fields = shapes.categories.read(request)
        return JSONResponse(await service.layers.list_categories(call, scope, fields))

    @router.get(path + "/{name}", operation_id="get_category", summary="Show a category", openapi_extra=project)
    async def get_category(request: Request, call: ReadCall, name: PathName) -> JSONResponse:
        return JSONResponse(await service.layers.get_category(call, shapes.project.read(request).scope, name))

    @router.put(
        path + "/{name}",
        operation_id="declare_category",
        summary="Declare a category",
        openapi_extra=shapes.category.openapi(),
    )
    async def declare_category(request: Request, call: ManageCall, name: PathName) -> JSONResponse:
        scope, fields = await shapes.category.read(request)
        return JSONResponse(await service.layers.declare_category(call, scope, name, fields))

    @router.delete(path + "/{name}", operation_id="delete_category", summary="Delete a category", openapi_extra=project)
    async def delete_category(request: Request, call: ManageCall, name: PathName) -> JSONResponse:
        return JSONResponse(await service.layers.delete_category(call, shapes.project.read(request).scope, name))

    return router


def layer_routes(service: MemoryService, shapes: Shapes) -> APIRouter:
    """Return the routes about the intention and health."""
    router = APIRouter(tags=["layers"])
    project, intention = shapes.project.openapi(), "/v1/users/{user_id}/intention"

    @router.get(intention, operation_id="get_intention", summary="Show the intention", openapi_extra=project)
    async def get_intention(request: Request, call: ReadCall) -> JSONResponse:
        return JSONResponse(await service.layers.get_intention(call, shapes.project.read(request).scope))

    @router.put(
        intention,
        operation_id="set_intention",
        summary="Set goals or constraints",
        openapi_extra=shapes.intention.openapi(),
    )
    async def set_intention(request: Request, call: ManageCall) -> JSONResponse:
        scope, fields = await shapes.intention.read(request)
        return JSONResponse(await service.layers.set_intention(call, scope, fields))

    @router.get(
        "/v1/users/{user_id}/health",
        operation_id="get_health",
        summary="Health of a user's part",
        openapi_extra=project,
    )
    async def get_health(request: Request, call: ReadCall) -> JSONResponse:
        return JSONResponse(await service.layers.health(call, shapes.project.read(request).scope))

    return router
