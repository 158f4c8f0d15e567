"""A guard against a Qdrant server that accepts requests and does not answer them: then requests fail at once.

Guaranteed: after `MAX_HANGS` requests in a row without an answer in time no request is sent until the server has
answered a probe in the background, so no question waits for a server that is known to hang.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar

from qdrant_client import models

from schemas.failures import Unavailable

T = TypeVar("T")

MAX_HANGS = 3
"""Requests in a row without an answer in time: one may be a pause of the server's."""

PROBE_PAUSES_S = (0.5, 1.0, 2.0, 4.0)
"""Pauses before the probes, then the last one again. A probe itself takes up to the timeout while the server hangs."""

HANG_SHARE = 0.5
"""The share of the timeout after which a failure counts as no answer in time; a refusal takes milliseconds."""


class HangGuard:
    """Counts requests without an answer, and probes the server while none is sent."""

    def __init__(self, probe: Callable[[], Awaitable[models.CollectionsResponse]], timeout_s: float) -> None:
        """`probe` is a cheap request; `timeout_s` is the longest that one request takes."""
        self._probe = probe
        self._timeout_s = timeout_s
        self._hangs = 0
        self._probing: asyncio.Task[None] | None = None

    @property
    def problem(self) -> str | None:
        """The reason why no request is sent; None if requests are."""
        return None if self._probing is None else "the vector server accepts requests and does not answer"

    async def answer(self, request: Awaitable[T]) -> T:
        """Await a response, at most the timeout in all (the client's own timeout is between two bytes).

        Raises Unavailable at once while the server hangs, and the client's errors.
        """
        if (problem := self.problem) is not None:
            if inspect.iscoroutine(request):
                request.close()
            raise Unavailable(problem)
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await request
        except (Exception, asyncio.CancelledError):
            # A question that gives up before the timeout has waited in vain, too.
            self._failed(asyncio.get_running_loop().time() - began)
            raise
        self._hangs = 0
        return response

    def close(self) -> None:
        """End the probes."""
        if self._probing is not None:
            self._probing.cancel()

    def _failed(self, seconds: float) -> None:
        self._hangs = self._hangs + 1 if seconds >= HANG_SHARE * self._timeout_s else 0
        if self._hangs >= MAX_HANGS and self._probing is None:
            self._probing = asyncio.create_task(self._until_answered())

    async def _until_answered(self) -> None:
        """Probe the server until it answers, or refuses at once: then requests tell more."""
        pauses = iter(PROBE_PAUSES_S)
        try:
            while self._hangs:
                await asyncio.sleep(next(pauses, PROBE_PAUSES_S[-1]))
                await self._send_probe()
        finally:
            self._probing = None

    async def _send_probe(self) -> None:
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._probe()
        except Exception:
            if asyncio.get_running_loop().time() - began >= HANG_SHARE * self._timeout_s:
                return
        self._hangs = 0
