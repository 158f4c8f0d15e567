"""The id and the trace of a request, for log lines and for records.

Guaranteed: the ids of a request are in the log lines of its task only.
"""

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from schemas.messages.records import REQUEST_ID_HEADER, is_request_id

_propagator = TraceContextTextMapPropagator()
_request_id: ContextVar[str | None] = ContextVar("request_id", default=None)


@contextmanager
def named_request(request_id: str) -> Iterator[None]:
    """Name the request of the block; an invalid id, such as `-`, leaves it unnamed."""
    token = _request_id.set(request_id if is_request_id(request_id) and request_id != "-" else None)
    try:
        yield
    finally:
        _request_id.reset(token)


def carried_headers() -> dict[str, str]:
    """Return the headers of a record that follows from the current request: `traceparent`, `request_id`."""
    headers: dict[str, str] = {}
    _propagator.inject(headers)
    if (request_id := _request_id.get()) is not None:
        headers[REQUEST_ID_HEADER] = request_id
    return headers


def add_request_fields(_logger: object, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add `request_id` and `trace_id` of the current request to a log line; a processor of structlog."""
    if (request_id := _request_id.get()) is not None:
        line["request_id"] = request_id
    span = trace.get_current_span().get_span_context()
    if span.is_valid:
        line["trace_id"] = trace.format_trace_id(span.trace_id)
    return line
