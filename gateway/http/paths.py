"""Path and method as routes see them: raw paths, so that an encoded `/` in a name does not split it; HEAD as GET."""

import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

STREAM = re.compile(r"/v1/users/[^/]+/(events|export|files/[^/]+)|/admin/live/events")
"""Paths whose answers stay open, or last as long as their reader takes."""


def is_stream(path: str) -> bool:
    """True for a path whose answer has no end, or one that its reader decides about.

    >>> is_stream("/v1/users/u1/events"), is_stream("/v1/users/u1/memories/events")
    (True, False)
    >>> is_stream("/admin/live/events")
    True
    """
    return STREAM.fullmatch(path) is not None


class RawPaths:
    """ASGI middleware: replaces the decoded path by the raw one; names are decoded where they are used."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (raw := scope.get("raw_path")) is not None:
            scope = {**scope, "path": raw.partition(b"?")[0].decode("latin-1")}
        await self._app(scope, receive, send)


class Heads:
    """Passes a HEAD on as a GET, and drops the bytes of its answer; its header fields stay."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD" or is_stream(scope["path"]):
            await self._app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self._app({**scope, "method": "GET"}, receive, send_without_body)
