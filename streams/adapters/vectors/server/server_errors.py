"""Errors of a Qdrant server, over REST and gRPC: which of them a retry may get over."""

from json import JSONDecodeError

from grpc import StatusCode
from grpc.aio import AioRpcError
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

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
