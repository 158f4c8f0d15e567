"""One request to a Qdrant server: its timeout, and the translation of its errors.

Enters: a request of the client. Leaves: its response. Guaranteed: a response, or `Unavailable` within the timeout, or
the client's own error if the same request would be rejected again (a defect).
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
"""Statuses below 500 that a retry may not get: the API key is corrected, the collection created again."""

NO_ANSWER_ERRORS = (TimeoutError, ResponseHandlingException, QdrantException, JSONDecodeError, UnicodeDecodeError)
"""No connection, a timeout, a busy server, or a proxy's page in place of a response."""

NOT_FOUND = 404
"""The status for a missing collection."""

SERVER_ERROR = 500
"""This status and all above it are server errors."""


async def await_answer(request: Awaitable[T], timeout_s: float) -> T:
    """Await a response, at most `timeout_s` in all (the client's own timeout is between two bytes)."""
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
    """Await that a write is applied. Raises Unavailable if the server will apply it only later."""
    status = (await await_answer(write, timeout_s)).status
    if status != UpdateStatus.COMPLETED:
        raise Unavailable(f"the vector server has not applied a write yet: {status}")


def is_transient(status_code: int | None) -> bool:
    """True if a retry may succeed."""
    return status_code is None or status_code in TRANSIENT_STATUSES or status_code >= SERVER_ERROR


def is_missing(error: Unavailable) -> bool:
    """True if the server answered that the collection does not exist."""
    cause = error.__cause__
    return isinstance(cause, UnexpectedResponse) and cause.status_code == NOT_FOUND
