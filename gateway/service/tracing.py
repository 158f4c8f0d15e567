"""What follows a request through this process: its id and its trace, for log lines and for records.

Guaranteed: the ids of a request stand in the log lines of its own task and of nothing else.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from schemas.messages.request_ids import REQUEST_ID_HEADER, is_request_id

_propagator = TraceContextTextMapPropagator()
_request_id: ContextVar[str | None] = ContextVar("request_id", default=None)


@contextmanager
def named_request(request_id: str) -> Iterator[None]:
    """Name the request of the block; an id that is none, such as `-`, leaves it unnamed."""
    token = _request_id.set(request_id if is_request_id(request_id) and request_id != "-" else None)
    try:
        yield
    finally:
        _request_id.reset(token)


def carried_headers() -> dict[str, str]:
    """Return the headers of a record that the current request leads to: `traceparent`, `request_id`."""
    headers: dict[str, str] = {}
    _propagator.inject(headers)
    if (request_id := _request_id.get()) is not None:
        headers[REQUEST_ID_HEADER] = request_id
    return headers


class RequestFormatter(logging.Formatter):
    """Adds `request_id` and `trace_id` to the lines of a request."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        """Return the line, without a traceback."""
        line = super().formatMessage(record)
        if (request_id := _request_id.get()) is not None:
            line += f" request_id={request_id}"
        span = trace.get_current_span().get_span_context()
        return f"{line} trace_id={trace.format_trace_id(span.trace_id)}" if span.is_valid else line
