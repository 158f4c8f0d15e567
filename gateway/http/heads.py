"""ASGI middleware: answer HEAD as GET without its body; load balancers ask so.

An answer without an end has no HEAD: it would begin for nothing.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.http.paths import is_stream


class Heads:
    """Passes a HEAD on as a GET, and drops the bytes of its answer; its header fields stay."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http" or scope["method"] != "HEAD" or is_stream(scope["path"]):
            await self._app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self._app({**scope, "method": "GET"}, receive, send_without_body)
