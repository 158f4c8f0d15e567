"""The pipelines of the deployment, shown to callers that may operate it."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from modestream_client.operations import GET_PIPELINE, LIST_REVISIONS

from gateway.http.calls import OperateCall
from gateway.service.service import MemoryService

RevisionNumber = Annotated[int | None, Query(ge=0, description="A revision; without it the current one.")]
Limit = Annotated[int, Query(ge=1, le=200)]


def pipeline_routes(service: MemoryService) -> APIRouter:
    """Return the routes that show the pipelines."""
    router = APIRouter(tags=["pipelines"])

    @router.get("/v1/pipelines", operation_id="get_pipeline", summary="The steps of the pipelines, and their settings")
    async def get_pipeline(call: OperateCall, revision: RevisionNumber = None) -> JSONResponse:
        return JSONResponse(await service.operations.run(GET_PIPELINE, call, {}, {"revision": revision}))

    @router.get("/v1/pipelines/revisions", operation_id="list_revisions", summary="The last revisions, latest first")
    async def list_revisions(call: OperateCall, limit: Limit = 50) -> JSONResponse:
        return JSONResponse(await service.operations.run(LIST_REVISIONS, call, {}, {"limit": limit}))

    return router
