"""One trace and one id from a request over HTTP through the worker's steps and back."""

import io
import json
import logging
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from modestream_client import MemoryServiceError, MemoryTimeout
from modestream_client.records import Written
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from gateway.service.tracing import add_request_fields, carried_headers
from tests.fakes.wire import FakeWire
from tests.harnesses.mcp import over_http
from tests.worlds.gateway import http_over
from tests.worlds.in_memory_client import InMemoryTransport
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json
from tests.worlds.tracing import (
    CALLER_SPAN_ID,
    TRACE_ID,
    TRACEPARENT,
    parent_of,
    recorded_spans,
    span_id_of,
    trace_id_of,
)

TURN = {"conversation_id": "c1", "role": "user", "content": "The token is wz47."}
TURNS = "/v1/users/ana%40example.org/turns"
TEMPLATE = "/v1/users/{user_id}/turns"


class NotingWire(FakeWire):
    """A wire that notes the headers of each record, and may fail then."""

    def __init__(self, failure: Exception | None = None) -> None:
        super().__init__()
        self.failure = failure
        self.headers: list[dict[str, str]] = []

    async def write(self, topic: str, value: Json, *, principal: str | None, timeout: float) -> Written:
        self.headers.append(carried_headers())
        return await super().write(topic, value, principal=principal, timeout=timeout)


@pytest.fixture
def spans() -> Any:
    with recorded_spans() as exporter:
        yield exporter


def named(exporter: InMemorySpanExporter, name: str) -> Any:
    [span] = [span for span in exporter.get_finished_spans() if span.name == name]
    return span


async def test_one_trace_from_http_to_the_vector(spans: InMemorySpanExporter, tmp_path: Path) -> None:
    async with (
        InMemoryPipeline(tmp_path).running() as pipeline,
        http_over(InMemoryTransport(pipeline, carried_headers)) as http,
    ):
        answer = await http.post(TURNS, json=TURN, headers={"traceparent": TRACEPARENT, "X-Request-Id": "r-1"})
        await pipeline.topics.settled()
        [turn] = pipeline.topics.records(pipeline.names.turns)
    assert answer.status_code == 201
    assert answer.headers["X-Request-Id"] == "r-1"
    assert turn.header("request_id") == b"r-1"
    request, remembering = named(spans, f"POST {TEMPLATE}"), named(spans, "memory.turns-Remember")
    assert {trace_id_of(span) for span in spans.get_finished_spans()} == {TRACE_ID}
    assert parent_of(request) == CALLER_SPAN_ID
    assert parent_of(remembering) == span_id_of(request)
    assert "memory.embedded-Remember" in {span.name for span in spans.get_finished_spans()}
    assert request.attributes == {
        "http.request.method": "POST",
        "http.route": TEMPLATE,
        "http.response.status_code": 201,
    }


async def test_spans_tell_neither_users_nor_texts(spans: InMemorySpanExporter) -> None:
    async with http_over(NotingWire(MemoryServiceError("internal", "wz47"))) as http:
        for path in (TURNS, "/v1/users/ana%40example.org/wz47", "/wz47"):
            await http.request("wz47", path)
            await http.post(path, json=TURN)
            await http.get(path, params={"q": "wz47"})
    told = "".join(span.to_json() for span in spans.get_finished_spans())
    assert TEMPLATE in told
    assert "ana" not in told
    assert "wz47" not in told


@pytest.mark.parametrize(("problem", "status"), [(MemoryTimeout("late"), 504), (RuntimeError("wz47"), 502)])
async def test_failure_is_an_error_on_the_span(spans: InMemorySpanExporter, problem: Exception, status: int) -> None:
    async with http_over(NotingWire(problem)) as http:
        answer = await http.post(TURNS, json=TURN)
    span = named(spans, f"POST {TEMPLATE}")
    assert answer.status_code == status
    assert span.status.status_code == StatusCode.ERROR


async def test_probes_make_no_spans(spans: InMemorySpanExporter) -> None:
    async with http_over(NotingWire(MemoryTimeout("late"))) as http:
        await http.get("/live")
        await http.get("/ready")
        await http.get("/openapi.json")
    assert [span.name for span in spans.get_finished_spans()] == ["GET /openapi.json"]


@pytest.mark.parametrize("broken", ["", "nonsense", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "0" * 10_000])
async def test_broken_traceparent_counts_as_absent(spans: InMemorySpanExporter, broken: str) -> None:
    async with http_over(NotingWire(MemoryTimeout("late"))) as http:
        answer = await http.post(TURNS, json=TURN, headers={"traceparent": broken, "tracestate": "\\"})
    assert answer.status_code == 504
    assert parent_of(named(spans, f"POST {TEMPLATE}")) is None


async def test_trace_is_carried_on_without_an_sdk() -> None:
    wire = NotingWire(MemoryTimeout("late"))
    async with http_over(wire) as http:
        await http.post(TURNS, json=TURN, headers={"traceparent": TRACEPARENT, "X-Request-Id": "r-1"})
        await http.post(TURNS, json=TURN)
    followed, plain = wire.headers
    assert followed == {"traceparent": TRACEPARENT, "request_id": "r-1"}
    assert set(plain) == {"request_id"}


@pytest.mark.parametrize("given", [None, "", "a b", "x" * 65, "a=b"])
async def test_invalid_request_id_is_replaced_everywhere(given: str | None) -> None:
    wire = NotingWire(MemoryTimeout("late"))
    async with http_over(wire) as http:
        answer = await http.post(TURNS, json=TURN, headers={} if given is None else {"X-Request-Id": given})
    made = answer.headers["X-Request-Id"]
    assert made != given
    assert answer.json()["request_id"] == made
    assert wire.headers == [{"request_id": made}]


@pytest.mark.parametrize(
    ("path", "status"), [(TURNS, 502), ("/nowhere", 404), ("/v1/users/u1", 405), ("/v1/users/%FF/turns", 422)]
)
async def test_every_answer_has_the_id_of_its_request(path: str, status: int) -> None:
    async with http_over(NotingWire(RuntimeError("a defect"))) as http:
        answer = await http.post(path, json=TURN, headers={"X-Request-Id": "r-1"})
    assert answer.status_code == status
    assert answer.headers.get_list("X-Request-Id") == ["r-1"]
    assert answer.json()["request_id"] == "r-1"


async def test_log_lines_have_request_and_trace() -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            structlog.processors.JSONRenderer(sort_keys=True),
            foreign_pre_chain=[add_request_fields, structlog.stdlib.add_logger_name],
        )
    )
    log = logging.getLogger("gateway")
    log.addHandler(handler)
    try:
        async with http_over(NotingWire(MemoryTimeout("late"))) as http:
            await http.post(TURNS, json=TURN, headers={"traceparent": TRACEPARENT, "X-Request-Id": "r-1"})
        log.warning("after")
    finally:
        log.removeHandler(handler)
    assert [json.loads(line) for line in written.getvalue().splitlines()] == [
        {"event": "late", "logger": "gateway.service.requests", "request_id": "r-1", "trace_id": TRACE_ID},
        {"event": "after", "logger": "gateway"},
    ]


async def test_tool_call_is_one_trace_with_its_record(spans: InMemorySpanExporter) -> None:
    wire = NotingWire()
    call = {"name": "search_memory", "arguments": {"query": "wz47"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accepted = {"Accept": "application/json, text/event-stream", "traceparent": TRACEPARENT, "X-Request-Id": "r-1"}
    async with over_http(wire) as url, httpx.AsyncClient(base_url=url) as http:
        answer = await http.post("/mcp/users/ana", json=message, headers=accepted)
    assert answer.status_code == 200, answer.text
    [headers] = wire.headers
    assert headers["request_id"] == "r-1"
    assert headers["traceparent"][3:35] == TRACE_ID
    assert parent_of(named(spans, "POST /mcp/users/{user_id}")) == CALLER_SPAN_ID
