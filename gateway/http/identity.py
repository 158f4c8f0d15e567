"""ASGI middleware: an id for every request, and its caller."""

import secrets
from collections.abc import Mapping
from typing import Protocol

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.http.problems import problem
from gateway.service.calls import Caller, Refused
from gateway.service.tracing import named_request
from schemas.messages.records import is_request_id

OPEN_PATHS = frozenset({"/live", "/ready", "/openapi.json"})
"""Paths without a key (docs/contract.md)."""


class Callers(Protocol):
    async def caller_of(self, headers: Headers, address: str) -> Caller:
        """Return the caller. Raises Refused, `unauthenticated`."""
        ...


class OpenCallers:
    """A keyless gateway on loopback: every caller may do everything, also operate."""

    async def caller_of(self, headers: Headers, address: str) -> Caller:  # noqa: ARG002
        return Caller(is_operator=True)


class RequestIds:
    """Puts `request_id` into the scope, and into the answer as `X-Request-Id`; the outermost middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent = Headers(scope=scope).get("x-request-id", "")
        request_id = scope["request_id"] = sent if is_request_id(sent) else secrets.token_hex(8)

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            await send(message)

        with named_request(request_id):
            await self._app(scope, receive, send_with_id)


NO_PATH_CALLERS: Mapping[str, Callers] = {}


class Identify:
    """Puts the `caller` into the scope; answers 401 to unknown callers.

    `path_callers` are callers by path prefixes that identify them by other means, such as the pages by cookies: their
    refusals are put into the scope as `refused`, and the route answers.
    """

    def __init__(self, app: ASGIApp, callers: Callers, path_callers: Mapping[str, Callers] = NO_PATH_CALLERS) -> None:
        self._app = app
        self._callers = callers
        self._path_callers = path_callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            address = (scope.get("client") or ("",))[0]
            path = scope["path"]
            prefixes = self._path_callers.items()
            callers = next((other for start, other in prefixes if f"{path}/".startswith(f"{start}/")), None)
            try:
                scope["caller"] = await (callers or self._callers).caller_of(Headers(scope=scope), address)
            except Refused as refused:
                if callers is None:
                    await problem(refused, scope["request_id"])(scope, receive, send)
                    return
                scope["refused"] = refused
        await self._app(scope, receive, send)
