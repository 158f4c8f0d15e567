"""Traces and request ids: taken from a record's headers, current while its step runs, carried on by its events.

Enters: `traceparent`, `tracestate` (W3C) and `request_id` of a record. Leaves: spans, by OpenTelemetry's API alone; the
fields `request_id` and `trace_id` of log lines; the same headers on events. Guaranteed: no key, value or text of a
record gets into a span; invalid headers count as absent. Without an SDK in the process no span is made, but a trace is
carried on; what has no such header then costs nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from structlog.contextvars import bound_contextvars

from schemas.messages.records import Headers, Record
from schemas.messages.request_ids import REQUEST_ID_HEADER, is_request_id

SCOPE = "modestream"
"""The instrumentation scope of the spans."""

TRACE_HEADERS = ("traceparent", "tracestate")
CARRIED = frozenset({*TRACE_HEADERS, REQUEST_ID_HEADER})

MAX_HEADER_BYTES = 512
"""Of a longer header nothing is read: the propagator would log each one."""

_propagator = TraceContextTextMapPropagator()
_carried: ContextVar[Headers] = ContextVar("carried_headers", default=())


def carried_headers() -> Headers:
    """Return the headers of an event that follows from the record whose step runs; none outside of a step."""
    return _carried.get()


def mark_refused(code: str) -> None:
    """Note on the current span that its record was refused."""
    trace.get_current_span().set_attribute("error.type", code)


class FollowedRecord:
    """A record with its span, if there is one, and what its events and log lines have of it."""

    __slots__ = ("_carried", "_context", "_fields", "_span")

    def __init__(self, span: Span, request_id: str | None) -> None:
        self._span = span
        self._context = trace.set_span_in_context(span)
        self._fields: dict[str, str] = {}
        headers: dict[str, str] = {}
        _propagator.inject(headers, self._context)
        if headers:
            self._fields["trace_id"] = trace.format_trace_id(span.get_span_context().trace_id)
        if request_id is not None:
            self._fields["request_id"] = headers[REQUEST_ID_HEADER] = request_id
        self._carried = tuple((name, value.encode()) for name, value in headers.items())

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make it current while the block runs. An exception of the block ends the span, without its message."""
        attached, carried = context.attach(self._context), _carried.set(self._carried)
        try:
            with bound_contextvars(**self._fields):
                yield
        except BaseException as problem:
            self._fail(problem)
            raise
        finally:
            _carried.reset(carried)
            context.detach(attached)

    def end(self) -> None:
        """End the span."""
        self._span.end()

    def _fail(self, problem: BaseException) -> None:
        # Messages of exceptions may have texts of memories.
        self._span.set_attribute("error.type", type(problem).__qualname__)
        self._span.set_status(StatusCode.ERROR)
        self._span.end()


class RecordTracer:
    """Follows the records of one step. Spans are named as the consumer: topic and agents."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tracer = trace.get_tracer(SCOPE)
        self._makes_spans = not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)

    def follow(self, record: Record) -> FollowedRecord | None:
        """Begin the span of a record, a child of its `traceparent`; None if there is nothing to follow."""
        headers = _carried_by(record)
        if not headers and not self._makes_spans:
            return None
        parent = _propagator.extract(headers, context.Context())
        span = self._tracer.start_span(self._name, parent, SpanKind.CONSUMER, _attributes(record))
        request_id = headers.get(REQUEST_ID_HEADER, "")
        return FollowedRecord(span, request_id if is_request_id(request_id) else None)


def _carried_by(record: Record) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in record.headers:
        if name in CARRIED and value is not None and len(value) <= MAX_HEADER_BYTES:
            # The first of a name counts (docs/contract.md).
            found.setdefault(name, value.decode(errors="replace"))
    return found


def _attributes(record: Record) -> dict[str, Any]:
    return {
        "messaging.system": "kafka",
        "messaging.operation.type": "process",
        "messaging.destination.name": record.topic,
        "messaging.destination.partition.id": str(record.partition),
        "messaging.kafka.offset": record.offset,
    }
