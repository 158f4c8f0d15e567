"""The pipelines of the deployment: for callers that may operate it."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from gateway.http.calls import OperateCall
from gateway.http.contract import Shapes
from gateway.service.service import MemoryService

RevisionNumber = Annotated[int | None, Query(ge=0, description="A revision; without it the current one.")]
Limit = Annotated[int, Query(ge=1, le=200)]


def pipeline_routes(service: MemoryService, shapes: Shapes) -> APIRouter:
    """Return the routes about pipelines."""
    router = APIRouter(tags=["pipelines"])

    @router.get("/v1/pipelines", operation_id="get_pipeline", summary="The steps of the pipelines, and their settings")
    async def get_pipeline(call: OperateCall, revision: RevisionNumber = None) -> JSONResponse:
        return JSONResponse(await service.pipelines.show(call, revision))

    @router.get("/v1/pipelines/revisions", operation_id="list_revisions", summary="The last revisions, latest first")
    async def list_revisions(call: OperateCall, limit: Limit = 50) -> JSONResponse:
        return JSONResponse(await service.pipelines.revisions(call, limit))

    @router.post(
        "/v1/pipelines/edits",
        operation_id="edit_pipeline",
        summary="Edit the pipelines: all edits are accepted, as a revision, or none",
        openapi_extra=shapes.pipeline_edits.openapi(),
    )
    async def edit_pipeline(request: Request, call: OperateCall) -> JSONResponse:
        return JSONResponse(await service.pipelines.edit(call, (await shapes.pipeline_edits.read(request)).fields))

    @router.post(
        "/v1/pipelines/rollback",
        operation_id="rollback_pipeline",
        summary="Make an earlier revision count again",
        openapi_extra=shapes.pipeline_rollback.openapi(),
    )
    async def rollback_pipeline(request: Request, call: OperateCall) -> JSONResponse:
        fields = (await shapes.pipeline_rollback.read(request)).fields
        return JSONResponse(await service.pipelines.roll_back(call, fields))

    return router
