"""`/live`, `/ready`, `/v1/me`: without a word about brokers."""

from collections.abc import Awaitable, Callable

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from gateway.http.calls import CallerOf
from gateway.service.failures import unavailable

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
