"""One request to a Qdrant server: its time limit, and what its failures mean.

In goes a request of the client; out comes its answer. Guaranteed: an answer, or `Unavailable` within the time limit,
or the client's own error where the same request would be refused again (a defect).
"""

import asyncio
from collections.abc import Awaitable
from json import JSONDecodeError
from typing import TypeVar

from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from qdrant_client.models import UpdateResult, UpdateStatus

from schemas.failures import Unavailable

T = TypeVar("T")

TRANSIENT_STATUSES = frozenset({401, 403, 404, 408, 429})
"""Answers below 500 that a later attempt may not get: a key that is corrected, a collection that is made again."""

NO_ANSWER_ERRORS = (TimeoutError, ResponseHandlingException, QdrantException, JSONDecodeError, UnicodeDecodeError)
"""No connection, no time, a server that is busy, or a proxy's page in place of an answer."""

NOT_FOUND = 404
"""The answer for a collection that is not there."""

SERVER_ERROR = 500
"""This answer and all above it are the server's fault."""


async def await_answer(request: Awaitable[T], timeout_s: float) -> T:
    """Wait for an answer, no longer than `timeout_s` altogether (the client's own limit is one between two bytes)."""
    try:
        async with asyncio.timeout(timeout_s):
            return await request
    except NO_ANSWER_ERRORS as error:
        raise Unavailable(f"no answer from the vector server: {error!r}") from error
    except UnexpectedResponse as error:
        if is_transient(error.status_code):
            raise Unavailable(f"the vector server answered {error.status_code}") from error
        raise


async def await_applied(write: Awaitable[UpdateResult], timeout_s: float) -> None:
    """Wait until a write is applied; one that the server only promises to apply later is `Unavailable`."""
    status = (await await_answer(write, timeout_s)).status
    if status != UpdateStatus.COMPLETED:
        raise Unavailable(f"a write to the vector server is not applied yet: {status}")


def is_transient(status_code: int | None) -> bool:
    """Tell whether a later attempt may be answered differently."""
    return status_code is None or status_code in TRANSIENT_STATUSES or status_code >= SERVER_ERROR


def is_missing(error: Unavailable) -> bool:
    """Tell whether the server answered that there is no such collection."""
    cause = error.__cause__
    return isinstance(cause, UnexpectedResponse) and cause.status_code == NOT_FOUND
