"""A provider of chat completions that keeps what it was sent, byte for byte, and answers what a test prepared."""

import asyncio
import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

JSON = {"content-type": "application/json"}
EVENTS = {"content-type": "text/event-stream"}


def completion(text: str | None, **more: Any) -> bytes:
    """Return an answer with one choice, with spaces that no library writes."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return json.dumps({"object": "chat.completion", "choices": [choice], **more}, separators=(" , ", ": ")).encode()


def event(text: str | None = None, **choice: Any) -> bytes:
    """Return an event with a piece of the first choice's text."""
    delta = {} if text is None else {"content": text}
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta, **choice}]}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
LAST = event(finish_reason="stop") + DONE


@dataclass
class Answer:
    """What is answered: in pieces; `breaks` leaves its end out, `waits` waits before the last piece."""

    pieces: tuple[bytes, ...] = (completion("Tea."),)
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: dict(JSON))
    breaks: bool = False
    waits: asyncio.Event | None = None


@dataclass(frozen=True)
class Asked:
    path: str
    headers: dict[str, str]
    body: bytes


class FakeProvider:
    """Use as an asynchronous context; `url` is its address."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answers: deque[Answer] = deque()
        self.left = asyncio.Event()
        """Set once a caller hung up before an answer was whole."""
        self.url = ""

    def next(self, *pieces: bytes, **how: Any) -> None:
        self.answers.append(Answer(pieces or (completion("Tea."),), **how))

    async def __aenter__(self) -> Self:
        """Listen on a free port of the loopback interface."""
        application = web.Application()
        application.router.add_route("*", "/v1/{path:.*}", self._answer)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.asked.append(Asked(request.path, headers, await request.read()))
        answer = self.answers.popleft() if self.answers else Answer()
        try:
            return await self._send(answer, request)
        except (asyncio.CancelledError, ConnectionError):
            self.left.set()
            raise

    async def _send(self, answer: Answer, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=answer.headers)
        *first, last = answer.pieces
        if first or answer.waits is None:
            await response.prepare(request)
        for piece in first:
            await response.write(piece)
        if answer.waits is not None:
            await answer.waits.wait()
        if answer.breaks and request.transport is not None:
            request.transport.abort()
            return response
        if not response.prepared:
            await response.prepare(request)
        await response.write(last)
        return response
