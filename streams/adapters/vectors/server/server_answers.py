"""Answers of a Qdrant server, over REST and gRPC: `Unavailable` for those that a retry may get over.

Guaranteed: after `MAX_HANGS` requests in a row without an answer in time no request is sent until the server has
answered a probe in the background, so no question waits for a server that is known to hang.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from json import JSONDecodeError
from typing import TypeVar

from grpc import StatusCode
from grpc.aio import AioRpcError
from qdrant_client import models
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

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
            is_hang = asyncio.get_running_loop().time() - began >= HANG_SHARE * self._timeout_s
            self._hangs = self._hangs + 1 if is_hang else 0
            if self._hangs >= MAX_HANGS and self._probing is None:
                self._probing = asyncio.create_task(self._until_answered())
            raise
        self._hangs = 0
        return response

    def close(self) -> None:
        """End the probes."""
        if self._probing is not None:
            self._probing.cancel()

    async def _until_answered(self) -> None:
        """Probe the server until it answers, or refuses at once: then requests tell more."""
        pauses = iter(PROBE_PAUSES_S)
        try:
            while self._hangs:
                await asyncio.sleep(next(pauses, PROBE_PAUSES_S[-1]))
                began = asyncio.get_running_loop().time()
                try:
                    async with asyncio.timeout(self._timeout_s):
                        await self._probe()
                except Exception:
                    if asyncio.get_running_loop().time() - began >= HANG_SHARE * self._timeout_s:
                        continue
                self._hangs = 0
        finally:
            self._probing = None


NO_ANSWER_ERRORS = (TimeoutError, ResponseHandlingException, QdrantException, JSONDecodeError, UnicodeDecodeError)
"""No connection, a timeout, a busy server, or a proxy's page in place of a response."""

REFUSALS = (UnexpectedResponse, AioRpcError)
"""What the client raises where the server, or what stands before it, has answered by a status."""

TRANSIENT_STATUSES = frozenset({401, 403, 404, 408, 429})
"""HTTP statuses below 500 that a retry may not get: the API key is corrected, the collection created again."""

PERMANENT_CODES = frozenset({StatusCode.INVALID_ARGUMENT, StatusCode.OUT_OF_RANGE, StatusCode.ALREADY_EXISTS})
"""Codes of gRPC that a retry gets again. UNIMPLEMENTED is another program's answer at the same address."""


def is_transient(error: UnexpectedResponse | AioRpcError) -> bool:
    """True if a retry may succeed."""
    if isinstance(error, AioRpcError):
        return error.code() not in PERMANENT_CODES
    status = error.status_code
    return status is None or status in TRANSIENT_STATUSES or status >= 500


def is_missing(error: BaseException | None) -> bool:
    """True if the server answered that the collection does not exist."""
    if isinstance(error, AioRpcError):
        return bool(error.code() == StatusCode.NOT_FOUND)
    return isinstance(error, UnexpectedResponse) and error.status_code == 404


def describe(error: UnexpectedResponse | AioRpcError) -> str:
    """Return what the server answered, and for a missing gRPC port what to do."""
    if not isinstance(error, AioRpcError):
        return f"the vector server answered {error.status_code}"
    if error.code() == StatusCode.UNAVAILABLE:
        return f"no answer from the vector server by gRPC: {error.details()}; is MODESTREAM_QDRANT_GRPC_PORT open?"
    return f"the vector server answered {error.code().name}: {error.details()}"


async def await_answer(request: Awaitable[T], guard: HangGuard) -> T:
    """Await a response. Raises Unavailable for none in time, at once while the server hangs."""
    try:
        return await guard.answer(request)
    except NO_ANSWER_ERRORS as error:
        raise Unavailable(f"no answer from the vector server: {error!r}") from error
    except REFUSALS as error:
        if is_transient(error):
            raise Unavailable(describe(error)) from error
        raise


async def await_applied(write: Awaitable[models.UpdateResult], guard: HangGuard) -> None:
    """Await that a write is applied. Raises Unavailable if the server will apply it only later."""
    status = (await await_answer(write, guard)).status
    if status != models.UpdateStatus.COMPLETED:
        raise Unavailable(f"the vector server has not applied a write yet: {status}")
