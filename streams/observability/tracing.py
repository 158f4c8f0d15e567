"""Traces and request ids: taken from a record's headers, current while its step runs, carried on by its events.

Enters: `traceparent`, `tracestate` (W3C) and `request_id` of a record. Leaves: spans, by OpenTelemetry's API alone; the
fields `request_id` and `trace_id` of log lines; the same headers on events. Guaranteed: no key, value or text of a
record gets into a span; invalid headers count as absent. Without an SDK in the process no span is made, but a trace is
carried on; a record without such a header costs nothing.
"""

from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Optional

from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from structlog.typing import EventDict

from schemas.messages.records import REQUEST_ID_HEADER, Headers, Record, is_request_id

SCOPE = "modestream"
"""The instrumentation scope of the spans."""

TRACEPARENT = "traceparent"
CARRIED = frozenset({TRACEPARENT, "tracestate", REQUEST_ID_HEADER})

MAX_HEADER_BYTES = 512
"""A longer header is ignored: the propagator would log each one."""

_propagator = TraceContextTextMapPropagator()
_current: ContextVar[Optional["FollowedRecord"]] = ContextVar("followed_record", default=None)


def carried_headers() -> Headers:
    """Return the headers of an event that follows from the record whose step runs; empty outside of a step."""
    followed = _current.get()
    return () if followed is None else followed.carried


def add_request_fields(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Add `request_id` and `trace_id` of the record whose step runs: a processor of structlog.

    Not by structlog's own context variables: binding them costs 50 µs for each record.
    """
    followed = _current.get()
    return event if followed is None else {**followed.fields, **event}


def mark_refused(code: str) -> None:
    """Note on the current span that its record was refused."""
    trace.get_current_span().set_attribute("error.type", code)


class FollowedRecord:
    """A record with its span, and the ids for its events and log lines.

    Current within `with`, any number of times; an exception there ends the span, without its message.
    """

    __slots__ = ("_attached", "_context", "_span", "_token", "carried", "fields")

    def __init__(self, span: Span, request_id: str | None) -> None:
        self._span = span
        self.fields: dict[str, str] = {}
        self._context = None
        headers: dict[str, str] = {}
        if span.get_span_context().is_valid:
            self._context = trace.set_span_in_context(span)
            _propagator.inject(headers, self._context)
            self.fields["trace_id"] = trace.format_trace_id(span.get_span_context().trace_id)
        if request_id is not None:
            self.fields["request_id"] = headers[REQUEST_ID_HEADER] = request_id
        self.carried: Headers = tuple((name, value.encode()) for name, value in headers.items())

    def __enter__(self) -> None:
        self._token: Token[FollowedRecord | None] = _current.set(self)
        self._attached = None if self._context is None else context.attach(self._context)

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._attached is not None:
            context.detach(self._attached)
        _current.reset(self._token)
        if kind is not None:
            # Messages of exceptions may have texts of memories.
            self._span.set_attribute("error.type", kind.__qualname__)
            self._span.set_status(StatusCode.ERROR)
            self.end()

    def end(self) -> None:
        self._span.end()


class RecordTracer:
    """Follows the records of one step. Spans are named as the consumer: topic and agents."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tracer = trace.get_tracer(SCOPE)
        self._makes_spans = not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)

    def follow(self, record: Record) -> FollowedRecord | None:
        """Start the span of a record, a child of its `traceparent`; None if there is nothing to follow."""
        headers: dict[str, str] = {}
        for name, value in record.headers:
            if name in CARRIED and value is not None and len(value) <= MAX_HEADER_BYTES:
                # The first of a name counts (docs/contract.md).
                headers.setdefault(name, value.decode(errors="replace"))
        if not headers and not self._makes_spans:
            return None
        request_id = headers.get(REQUEST_ID_HEADER, "")
        return FollowedRecord(self._span(record, headers), request_id if is_request_id(request_id) else None)

    def _span(self, record: Record, headers: dict[str, str]) -> Span:
        if not self._makes_spans and TRACEPARENT not in headers:
            return trace.INVALID_SPAN
        parent = _propagator.extract(headers, context.Context())
        if not self._makes_spans:
            return trace.get_current_span(parent)
        return self._tracer.start_span(
            self._name,
            parent,
            SpanKind.CONSUMER,
            {
                "messaging.system": "kafka",
                "messaging.operation.type": "process",
                "messaging.destination.name": record.topic,
                "messaging.destination.partition.id": str(record.partition),
                "messaging.kafka.offset": record.offset,
            },
        )
