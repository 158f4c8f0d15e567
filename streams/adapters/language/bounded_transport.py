"""HTTP for models' answers: as many bytes as one may have, unpacked, from the address in the settings and no other.

Leaves: httpx's responses. Raises `RefusedAnswer` for an answer beyond these bounds. A redirect arrives without its
target, so that no client follows it with the texts of a prompt: its status is the error.
"""

import os
from collections.abc import AsyncIterator
from typing import Any

import httpx

from streams.adapters.language.faults import MAX_ANSWER_BYTES, RefusedAnswer


def bound_responses(litellm: Any) -> None:
    """Have every client that LiteLLM makes, for OpenAI and the others, use a `BoundedTransport`: it has no setting."""
    from litellm.llms.custom_httpx import http_handler  # noqa: PLC0415 - after LiteLLM is configured

    def create(ssl_context: Any = None, ssl_verify: Any = None, **_: Any) -> BoundedTransport:
        verify = ssl_context if ssl_context is not None else ssl_verify is not False
        certificate = os.getenv("SSL_CERTIFICATE", litellm.ssl_certificate)
        return BoundedTransport(verify=verify, cert=certificate, http2=http_handler.http2_enabled())

    handlers: Any = http_handler
    handlers.AsyncHTTPHandler.create_async_transport = staticmethod(create)
    handlers.AsyncHTTPTransport = BoundedTransport  # what it makes for proxies


class BoundedTransport(httpx.AsyncHTTPTransport):
    """A transport of httpx whose responses are bounded."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Raises RefusedAnswer for a packed answer, here, or a long one, while it is read."""
        request.headers["Accept-Encoding"] = "identity"
        response = await super().handle_async_request(request)
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            await response.aclose()
            # A few packed bytes can be gigabytes.
            raise RefusedAnswer("sends packed answers although the request asks for plain ones")
        response.headers.pop("Location", None)
        response.stream = _BoundedStream(response.stream)
        return response


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for piece in self._stream:
            read += len(piece)
            if read > MAX_ANSWER_BYTES:
                raise RefusedAnswer(f"sends an answer of more than {MAX_ANSWER_BYTES} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
