"""Run records of a user."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from gateway.http.calls import ReadCall
from gateway.http.contract import Shapes
from gateway.service.service import MemoryService


def run_routes(service: MemoryService, shapes: Shapes) -> APIRouter:
    """Return the route."""
    router = APIRouter(tags=["runs"])

    @router.get(
        "/v1/users/{user_id}/runs",
        operation_id="list_runs",
        summary="How requests of a user went: the newest recorded runs",
        openapi_extra=shapes.runs.openapi(),
    )
    async def list_runs(request: Request, call: ReadCall) -> JSONResponse:
        scope, fields = shapes.runs.read(request)
        return JSONResponse(await service.run_records.list(call, scope, fields))

    return router
