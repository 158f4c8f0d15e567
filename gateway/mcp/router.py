"""The protocol over HTTP, stateless: `/mcp` for the key's own user, `/mcp/users/{user_id}` for a named one.

Guaranteed: the hosts, origins, callers and limits of the gateway apply here too, as its middleware is around this; a
user outside the caller's grants is refused before a message is read. Sessions and streams are not offered: every
request is independent, so any gateway answers any of them.
"""

from collections.abc import Collection

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from gateway.connection_settings import USUAL_TOOLS
from gateway.http.calls import decoded
from gateway.http.limits import COUNT_WRITE, WAIT_FOR_MODEL
from gateway.http.problems import problem
from gateway.mcp.server import Context, build_server
from gateway.mcp.tools import ToolRequest
from gateway.service.access import require_user
from gateway.service.calls import Call, Caller, Refused, own_user_of
from gateway.service.meters import Meters
from gateway.service.service import MemoryService
from schemas.state.policies import PERMISSIONS

OWN_PATH = "/mcp"
USER_PATH = "/mcp/users/{user_id}"

USER = "modestream.mcp_user"
"""Key of the user in an ASGI scope."""

CHECKED_BEFORE = TransportSecuritySettings(enable_dns_rebinding_protection=False)
"""`gateway.http.app` checks hosts and origins around all paths, with one setting for all of them."""


class McpRouter:
    """Adds the protocol to the app: its `routes`, and `running` as a context of its lifetime."""

    def __init__(
        self, service: MemoryService, tool_names: Collection[str] = USUAL_TOOLS, meters: Meters | None = None
    ) -> None:
        self._manager = StreamableHTTPSessionManager(
            build_server(service, request_of, tool_names, meters),
            json_response=True,
            stateless=True,
            security_settings=CHECKED_BEFORE,
        )
        self.running = self._manager.run
        """Entered once, in the lifespan of the app."""
        self.routes: list[BaseRoute] = [Route(path, _Endpoint(self._manager)) for path in (OWN_PATH, USER_PATH)]


class _Endpoint:
    """An ASGI app: to one that is not a function Starlette passes requests of any method."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            # A GET would open a stream on which nothing is ever sent.
            raise HTTPException(405, headers={"Allow": "POST"})
        try:
            user = _user_of(scope)
        except Refused as refused:
            await problem(refused, str(scope.get("request_id", "-")))(scope, receive, send)
            return
        await self._manager.handle_request({**scope, USER: user}, receive, send)


def request_of(context: Context) -> ToolRequest:
    """Return the call and the project of a request that came over HTTP."""
    assert context.request is not None
    scope: Scope = context.request.scope
    call = Call.within(scope["caller"], scope[USER], request_id=str(scope.get("request_id", "-")))
    return ToolRequest(call, count_write=scope[COUNT_WRITE], wait_for_model=scope[WAIT_FOR_MODEL])


def _user_of(scope: Scope) -> str:
    """Return the user of the path, or of the key. Raises Refused, `not_allowed`, if the caller may do nothing there."""
    caller: Caller = scope["caller"]
    named = scope["path_params"].get("user_id")
    try:
        user = own_user_of(caller) if named is None else decoded(named)
    except ValueError:
        raise Refused("invalid_value", "a name in a path is UTF-8, percent-encoded once", "user_id") from None
    # Any permission there admits it; each tool checks the one it needs.
    for permission in PERMISSIONS:
        try:
            require_user(caller, user, permission)
        except Refused as error:
            refused = error
        else:
            return user
    raise refused
