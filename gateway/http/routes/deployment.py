"""The gateway itself, without details of brokers; the users of a deployment, and its totals."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from gateway.http.calls import CallerOf, PathName, Preference, wait_of
from gateway.http.problems import request_id_of
from gateway.readiness import probe_user
from gateway.service.calls import Call, unavailable
from gateway.service.service import MemoryService

IsReady = Callable[[], Awaitable[bool]]


def health_routes(is_ready: IsReady) -> APIRouter:
    """Return the routes about the gateway itself."""
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
    """Return the routes about all users."""
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
