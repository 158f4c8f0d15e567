"""The users of a deployment, and its totals."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from gateway.http.calls import CallerOf, Preference
from gateway.http.preferences import wait_of
from gateway.http.problems import request_id_of
from gateway.readiness import probe_user
from gateway.service.calls import Call
from gateway.service.service import MemoryService

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

    @router.get("/v1/deployment", operation_id="get_deployment", summary="Totals over all users, and the state")
    async def get_deployment(request: Request, caller: CallerOf, prefer: Preference = None) -> JSONResponse:
        # Its state is that of a user without memories: any user's would do.
        call = Call.within(
            caller, caller.own_user or probe_user(service.boundary_fields), wait_of(prefer), request_id_of(request)
        )
        return JSONResponse(await service.users.deployment(call))

    return router
