"""Long work: consolidations and jobs."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from gateway.http.calls import ManageCall
from gateway.http.contract import Shapes
from gateway.service.jobs import JobKind
from gateway.service.service import MemoryService


def job_routes(service: MemoryService, shapes: Shapes) -> APIRouter:
    """Return the routes that run long work."""
    router = APIRouter(tags=["jobs"])

    @router.post(
        "/v1/users/{user_id}/consolidations",
        operation_id="consolidate",
        summary="Consolidate memories",
        openapi_extra=shapes.consolidation.openapi(),
    )
    async def consolidate(request: Request, call: ManageCall) -> JSONResponse:
        sent = await shapes.consolidation.read(request, is_optional=True)
        return JSONResponse(await service.jobs.consolidate(call, sent.scope, sent.fields))

    @router.post(
        "/v1/users/{user_id}/jobs/{kind}",
        operation_id="run_job",
        summary="Run a job over the user's vectors",
        openapi_extra=shapes.job.openapi(),
    )
    async def run_job(request: Request, call: ManageCall, kind: JobKind) -> JSONResponse:
        sent = await shapes.job.read(request, is_optional=True)
        return JSONResponse(await service.jobs.run(call, kind, sent.scope, sent.fields))

    return router
