"""The routes of the table of operations, of the deployment and its users.

Long work is answered at once or, with `Prefer: respond-async`, later.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse, Response
from modestream_client.operations import GET_PIPELINE, LIST_REVISIONS, OPERATIONS, Http, Operation

from gateway.http.calls import (
    CALL_FOR,
    OPERATE_ON_USER,
    CallerOf,
    JSONAnswer,
    OperateCall,
    PathName,
    Preference,
    ReadCall,
    WriteCall,
    is_async,
    wait_of,
)
from gateway.http.limits import pieces_of
from gateway.http.problems import request_id_of
from gateway.http.shapes import BodyReader, Shapes
from gateway.readiness import probe_user
from gateway.service.calls import Call, unavailable
from gateway.service.imports import Asked
from gateway.service.service import MemoryService

POLL_AFTER_S = 1
"""Seconds until the next poll of a running job."""

RevisionNumber = Annotated[int | None, Query(ge=0, description="A revision; without it the current one.")]

ACCEPTED: Mapping[int | str, dict[str, Any]] = {202: {"description": "It runs; `Location` has the address to ask."}}
NOTHING: Mapping[str, Any] = {}


def tagged(*tags: str) -> list[Operation[Any]]:
    return [row for row in OPERATIONS if row.http is not None and row.http.tag in tags]


def operation_routes(service: MemoryService, shapes: Shapes, rows: Iterable[Operation[Any]]) -> APIRouter:
    router = APIRouter()
    for row in rows:
        if row.http is not None:
            _add_route(router, service, shapes, row, row.http)
    return router


def job_routes(service: MemoryService) -> APIRouter:
    router = APIRouter(tags=["jobs"])

    @router.get(
        "/v1/users/{user_id}/jobs/{job_id}",
        operation_id="get_job",
        summary="The answer of a run that was left alone, or 202 while it runs",
        responses=dict(ACCEPTED),
    )
    async def get_job(call: ReadCall, job_id: PathName) -> Response:
        has_ended, result = await service.operations.result(call, job_id)
        return JSONAnswer(result) if has_ended else _started(call, job_id, result)

    return router


def import_routes(service: MemoryService, shapes: Shapes) -> APIRouter:
    router = APIRouter(tags=["jobs"])
    content = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    document = {**shapes.imported.openapi(), "requestBody": {"required": True, "content": content}}

    @router.post(
        "/v1/users/{user_id}/imports",
        operation_id="import_export",
        summary="Import chats from elsewhere: each message becomes a turn, once",
        status_code=202,
        responses=dict(ACCEPTED),
        openapi_extra=document,
    )
    async def import_export(request: Request, call: WriteCall) -> JSONResponse:
        scope, fields = shapes.imported.read(request)
        asked = Asked(scope=scope, **{**fields, "mode_for": tuple(fields.get("mode_for") or ())})
        job_id, counts = await service.imports.begin(call, asked, pieces_of(request))
        return _started(call, job_id, counts)

    return router


def pipeline_routes(service: MemoryService) -> APIRouter:
    router = APIRouter(tags=["pipelines"])

    @router.get("/v1/pipelines", operation_id="get_pipeline", summary="The steps of the pipelines, and their settings")
    async def get_pipeline(call: OperateCall, revision: RevisionNumber = None) -> JSONResponse:
        return JSONResponse(await service.operations.run(GET_PIPELINE, call, {}, {"revision": revision}))

    @router.get("/v1/pipelines/revisions", operation_id="list_revisions", summary="The last revisions, latest first")
    async def list_revisions(call: OperateCall, limit: Annotated[int, Query(ge=1, le=200)] = 50) -> JSONResponse:
        return JSONResponse(await service.operations.run(LIST_REVISIONS, call, {}, {"limit": limit}))

    return router


def _add_route(
    router: APIRouter, service: MemoryService, shapes: Shapes, operation: Operation[Any], http: Http
) -> None:
    reader, call_for = shapes.of(operation), CALL_FOR[operation.permission]
    if operation.permission == "operate" and operation.concerns_user:
        call_for = OPERATE_ON_USER

    async def answer(request: Request, named: Mapping[str, str], call: Call) -> Response:
        sent = await reader.read(request) if isinstance(reader, BodyReader) else reader.read(request)
        fields = {**sent.fields, **named}
        if operation.runs_long and is_async(request.headers.get("Prefer")):
            return _started(call, await service.operations.start(operation, call, sent.scope, fields))
        return JSONAnswer(await service.operations.run(operation, call, sent.scope, fields))

    # The framework takes the parameters of a path from the signature.
    async def answer_unnamed(request: Request, call: Call = call_for) -> Response:
        return await answer(request, {}, call)

    [named] = http.names or ["name"]
    InPath = Annotated[PathName, Path(alias=named)]  # noqa: N806 - a type, made of the row

    async def answer_named(request: Request, name: InPath, call: Call = call_for) -> Response:
        return await answer(request, {named: name}, call)

    router.add_api_route(
        http.path,
        answer_named if http.names else answer_unnamed,
        methods=[http.method],
        tags=[http.tag or ""],
        operation_id=http.id or operation.name,
        summary=http.summary,
        responses=dict(ACCEPTED) if operation.runs_long else {},
        openapi_extra=reader.openapi(),
    )


def _started(call: Call, job_id: str, progress: Mapping[str, Any] = NOTHING) -> JSONResponse:
    location = f"/v1/users/{quote(call.user_id, safe='')}/jobs/{quote(job_id, safe='')}"
    headers = {"Location": location, "Retry-After": str(POLL_AFTER_S)}
    return JSONResponse({"job_id": job_id, "state": "running", **progress}, 202, headers=headers)


IsReady = Callable[[], Awaitable[bool]]


def health_routes(is_ready: IsReady) -> APIRouter:
    router = APIRouter(tags=["gateway"])

    @router.get("/live", operation_id="live", summary="The gateway runs")
    async def live() -> JSONResponse:
        return JSONResponse({"status": "live"})

    @router.get("/ready", operation_id="ready", summary="The memory service answers")
    async def ready() -> JSONResponse:
        if not await is_ready():
            raise unavailable()
        return JSONResponse({"status": "ready"})

    @router.get("/v1/me", operation_id="get_me", summary="The caller and its grants")
    async def get_me(caller: CallerOf) -> JSONResponse:
        grants = None if caller.grants is None else [grant.model_dump(mode="json") for grant in caller.grants]
        body = {"name": caller.name, "principal": caller.principal, "user_id": caller.own_user, "grants": grants}
        return JSONResponse(body)

    return router


Prefix = Annotated[str, Query(max_length=256, description="Users whose name begins so.")]
Limit = Annotated[int, Query(ge=1, le=500)]
Cursor = Annotated[str | None, Query(description="`next` of the page before.")]


def user_routes(service: MemoryService) -> APIRouter:
    router = APIRouter(tags=["deployment"])

    @router.get("/v1/users", operation_id="list_users", summary="List the users that the caller may see")
    async def list_users(
        request: Request, caller: CallerOf, prefix: Prefix = "", limit: Limit = 50, cursor: Cursor = None
    ) -> JSONResponse:
        call = Call.within(caller, "", request_id=request_id_of(request))
        return JSONResponse(await service.users.list(call, prefix, limit, cursor))

    @router.get("/v1/receipts/{receipt_id}", operation_id="get_receipt", summary="The receipt of something forgotten")
    async def get_receipt(_caller: CallerOf, receipt_id: PathName) -> JSONResponse:
        return JSONResponse(await service.receipts.get(receipt_id))

    @router.get("/v1/deployment", operation_id="get_deployment", summary="Totals over all users, and the state")
    async def get_deployment(request: Request, caller: CallerOf, prefer: Preference = None) -> JSONResponse:
        # Its state is that of a user without memories: any user's would do.
        call = Call.within(
            caller, caller.own_user or probe_user(service.boundary_fields), wait_of(prefer), request_id_of(request)
        )
        return JSONResponse(await service.users.deployment(call))

    return router
