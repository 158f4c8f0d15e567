"""The only module that uses LiteLLM: loaded in a thread at the first call, and configured.

Guaranteed: one HTTP request a call (its own retries are off, redirects are not followed), a bounded response, no
network while loading, no `.env` file read, nothing printed, nothing cached; it runs on an event loop of its own, so it
never blocks the worker's.
"""

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from schemas.models.language import Heard, OnText
from streams.adapters.language.faults import MAX_ANSWER_BYTES, BrokenOff, RedactingFilter, RefusedAnswer
from streams.importing import exempt_from_collection

# HTTP for models' answers: as many bytes as one may have, unpacked, from the address in the settings and no other.
#
# Leaves: httpx's responses. Raises `RefusedAnswer` for an answer beyond these bounds. A redirect arrives without its
# target, so that no client follows it with the texts of a prompt: its status is the error.


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


Result = TypeVar("Result")


class BackgroundEventLoop:
    """Runs coroutines outside of the caller's loop. The thread starts with the first one, and ends with `stop`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine; return its result or raise its exception. Cancellation is passed on."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
            self._thread.start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def stop(self) -> None:
        """End the thread and any tasks a library left there; no coroutine of `run` may be running."""
        if self._loop is None or self._thread is None:
            return

        async def cancel_others() -> None:
            # LiteLLM's log worker never ends by itself.
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        await self.run(cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()
        self._loop = self._thread = None


IMPORT_ENVIRONMENT = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
"""Without the first, loading fetches prices from a server; without the second, it loads a `.env` file."""

LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai", "httpx", "httpcore")
"""Below WARNING these log the texts of prompts."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's message. `finish_reason` is OpenAI's; the cost is None if LiteLLM has no price for the model."""

    text: str
    finish_reason: str
    tokens_in: int
    tokens_out: int
    cost_usd: float | None


class LiteLLMLibrary:
    """LiteLLM, shared by all profiles of a process."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """`secrets` are redacted in its log events."""
        self._secrets = tuple(secrets)
        self._loading = asyncio.Lock()
        # A call is 10 ms of CPU time, which would block the worker's loop.
        self._loop = BackgroundEventLoop("litellm")
        self._litellm: Any = None

    async def load(self) -> None:
        """Load it, once, in a thread; takes seconds and 170 MB."""
        async with self._loading:
            if self._litellm is None:
                self._litellm = await asyncio.to_thread(_load, self._secrets)

    async def complete(self, arguments: Mapping[str, Any], on_text: OnText | None = None) -> Completion:
        """Send one request; `on_text` gets the pieces of the text as they come. Raises LiteLLM's errors."""
        await self.load()
        if on_text is None:
            return await self._loop.run(_completion(self._litellm, arguments))
        here = asyncio.get_running_loop()

        def heard(piece: str) -> None:
            here.call_soon_threadsafe(on_text, piece)

        return await self._loop.run(_streamed(self._litellm, arguments, heard))

    async def transcribe(self, arguments: Mapping[str, Any]) -> list[Heard]:
        """Send one sound. Raises LiteLLM's errors."""
        await self.load()
        return await self._loop.run(_heard(self._litellm, arguments))

    async def close(self) -> None:
        """Close its connections, which LiteLLM would leave open."""
        if self._litellm is not None:
            await self._loop.run(self._litellm.close_litellm_async_clients())
        await self._loop.stop()


def _load(secrets: tuple[str, ...]) -> Any:
    os.environ.update(IMPORT_ENVIRONMENT)
    with exempt_from_collection():
        import litellm  # noqa: PLC0415
        import openai.resources  # noqa: F401, PLC0415 - else the first call loads it, for a second, on its loop

    litellm.suppress_debug_info = True
    litellm.disable_aiohttp_transport = True  # its client cache drops sessions without closing them

    bound_responses(litellm)
    # It would open a sound, which may be hostile, in this process.
    calls: Any = litellm.main
    calls.calculate_request_duration = lambda _: None
    for logger in map(logging.getLogger, LOGGERS):
        logger.setLevel(logging.WARNING)
        logger.addFilter(RedactingFilter(secrets))
        logger.handlers.clear()
        logger.propagate = True
    with exempt_from_collection():
        # An answer of its own making loads the rest, which the first call would load on its loop, for half a second.
        hello = [{"role": "user", "content": "-"}]
        for _ in litellm.completion(model="openai/-", messages=hello, mock_response="-", stream=True, api_key="-"):
            pass
    return litellm


async def _completion(litellm: Any, arguments: Mapping[str, Any]) -> Completion:
    response = await litellm.acompletion(**arguments, max_retries=0, num_retries=0, caching=False)
    choice = response.choices[0]
    usage = getattr(response, "usage", None)
    cost = (getattr(response, "_hidden_params", None) or {}).get("response_cost")
    return Completion(
        text=choice.message.content or "",
        finish_reason=choice.finish_reason or "",
        tokens_in=_count(getattr(usage, "prompt_tokens", 0)),
        tokens_out=_count(getattr(usage, "completion_tokens", 0)),
        cost_usd=float(cost) if isinstance(cost, float | int) and cost >= 0 else None,
    )


async def _streamed(litellm: Any, arguments: Mapping[str, Any], on_text: OnText) -> Completion:
    """Raises BrokenOff for an answer without an end."""
    asked = {**arguments, "stream": True, "stream_options": {"include_usage": True}}
    stream = await litellm.acompletion(**asked, max_retries=0, num_retries=0, caching=False)
    texts: list[str] = []
    finish_reason, usage = "", None
    async with aclosing(stream):
        async for chunk in stream:
            usage = getattr(chunk, "usage", None) or usage
            for choice in chunk.choices[:1]:
                finish_reason = choice.finish_reason or finish_reason
                if piece := choice.delta.content:
                    texts.append(piece)
                    on_text(piece)
        # It says `stop` of a stream whose provider has said nothing.
        if all(getattr(stream, f"{kind}_finish_reason", "") is None for kind in ("received", "intermittent")):
            raise BrokenOff("breaks off its answer")
    tokens_in, tokens_out = (_count(getattr(usage, f"{kind}_tokens", 0)) for kind in ("prompt", "completion"))
    try:
        costs = litellm.cost_per_token(model=arguments["model"], prompt_tokens=tokens_in, completion_tokens=tokens_out)
        cost = float(sum(costs)) or None
    except Exception:
        cost = None
    return Completion("".join(texts), finish_reason, tokens_in, tokens_out, cost)


async def _heard(litellm: Any, arguments: Mapping[str, Any]) -> list[Heard]:
    response = await litellm.atranscription(**arguments, max_retries=0, num_retries=0, caching=False)
    parts = [part if isinstance(part, dict) else dict(part) for part in getattr(response, "segments", None) or ()]
    heard = [
        Heard(str(part.get("text", "")), _seconds(part.get("start")) or 0.0, _seconds(part.get("end")))
        for part in parts
    ]
    return heard or [Heard(response.text or "", 0.0, _seconds(getattr(response, "duration", None)))]


def _seconds(number: Any) -> float | None:
    """Validate seconds: servers may send anything."""
    return float(number) if isinstance(number, int | float) and 0 <= number < 1e7 else None


def _count(number: Any) -> int:
    """Validate a token count: servers may send anything."""
    return max(0, number) if isinstance(number, int) else 0
