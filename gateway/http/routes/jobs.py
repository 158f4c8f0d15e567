"""Long work: consolidations and jobs, at once or, with `Prefer: respond-async`, later."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from gateway.http.calls import AnswerLater, ManageCall, PathName, ReadCall
from gateway.http.contract import Shapes
from gateway.service.calls import Call
from gateway.service.jobs import JOB_KINDS, JobKind
from gateway.service.service import MemoryService

POLL_AFTER_S = 1
"""Seconds until the next question about a job that runs."""

ACCEPTED: Mapping[int | str, dict[str, Any]] = {202: {"description": "It runs; `Location` has the address to ask."}}


def job_routes(service: MemoryService, shapes: Shapes) -> APIRouter:
    """Return the routes that run long work."""
    router = APIRouter(tags=["jobs"])

    @router.post(
        "/v1/users/{user_id}/consolidations",
        operation_id="consolidate",
        summary="Consolidate memories",
        responses=dict(ACCEPTED),
        openapi_extra=shapes.consolidation.openapi(is_optional=True),
    )
    async def consolidate(request: Request, call: ManageCall, later: AnswerLater) -> JSONResponse:
        scope, fields = await shapes.consolidation.read(request, is_optional=True)
        if later:
            return _started(call, await service.jobs.start_consolidation(call, scope, fields))
        return JSONResponse(await service.jobs.consolidate(call, scope, fields))

    for kind in JOB_KINDS:
        _add_job(router, service, shapes, kind)

    @router.get(
        "/v1/users/{user_id}/jobs/{job_id}",
        operation_id="get_job",
        summary="The answer of a run that was left alone, or 202 while it runs",
        responses=dict(ACCEPTED),
    )
    async def get_job(call: ReadCall, job_id: PathName) -> JSONResponse:
        result = await service.jobs.result(call, job_id)
        return _started(call, job_id) if result is None else JSONResponse(result)

    return router


def _add_job(router: APIRouter, service: MemoryService, shapes: Shapes, kind: JobKind) -> None:
    body = shapes.refresh if kind == "refresh" else shapes.job

    @router.post(
        f"/v1/users/{{user_id}}/jobs/{kind}",
        operation_id=f"run_{kind}",
        summary=f"Run {kind} over the user's {'turns' if kind == 'refresh' else 'vectors'}",
        responses=dict(ACCEPTED),
        openapi_extra=body.openapi(is_optional=True),
    )
    async def run_job(request: Request, call: ManageCall, later: AnswerLater) -> JSONResponse:
        scope, fields = await body.read(request, is_optional=True)
        if later:
            return _started(call, await service.jobs.start(call, kind, scope, fields))
        return JSONResponse(await service.jobs.run(call, kind, scope, fields))


def _started(call: Call, job_id: str) -> JSONResponse:
    location = f"/v1/users/{quote(call.user_id, safe='')}/jobs/{quote(job_id, safe='')}"
    headers = {"Location": location, "Retry-After": str(POLL_AFTER_S)}
    return JSONResponse({"job_id": job_id, "state": "running"}, 202, headers=headers)
