"""ASGI middleware: refuse bodies with too many bytes, whether they announce their size or not.

The framework has a limit of its own, and answers an announced size in plain text: this one answers as a problem.
"""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.http.problems import SENTENCES_OF_HTTP, problem
from gateway.service.failures import Refused

MAX_BODY_BYTES = 16 * 1024 * 1024
"""Bytes of a body (docs/contract.md)."""


class CheckSizes:
    """Answers 413 by the header `Content-Length`; raises the same refusal into a body that is longer than that."""

    def __init__(self, app: ASGIApp, max_bytes: int = MAX_BODY_BYTES) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced[:20]) > self._max_bytes:
            await problem(_too_large(), scope["request_id"])(scope, receive, send)
        else:
            await self._app(scope, self._counted(receive), send)

    def _counted(self, receive: Receive) -> Receive:
        received = 0

        async def receive_within() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                raise _too_large()
            return message

        return receive_within


def _too_large() -> Refused:
    return Refused("too_large", SENTENCES_OF_HTTP[413])
