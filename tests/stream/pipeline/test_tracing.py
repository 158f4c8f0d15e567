"""One trace from a turn's record to its vector, and the id of its request in log lines."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from structlog.testing import capture_logs

from schemas.messages.records import Record
from streams.observability.tracing import add_request_fields
from streams.wire.partitioning import MOVED_FROM, partition_of
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import command_message, turn_message
from tests.worlds.tracing import (
    CALLER_SPAN_ID,
    TRACE_ID,
    TRACEPARENT,
    parent_of,
    recorded_spans,
    span_id_of,
    trace_id_of,
)

FOLLOWED = (("traceparent", TRACEPARENT.encode()), ("request_id", b"r-1"))
SECRET = "The deploy target is fly.io now, and the token is 4711."

Traced = tuple[InMemoryPipeline, InMemorySpanExporter]


@pytest.fixture
async def traced(tmp_path: Path) -> AsyncIterator[Traced]:
    """A running pipeline in a process with an SDK."""
    with recorded_spans() as exporter:
        async with InMemoryPipeline(tmp_path).running() as pipeline:
            yield pipeline, exporter


async def remember(pipeline: InMemoryPipeline, *headers: tuple[str, bytes | None], text: str = SECRET) -> Any:
    """Send a turn with headers, wait for its vector, and return its reply."""
    reply = await pipeline.ask(pipeline.names.turns, turn_message(text, "t-1"), headers)
    await pipeline.topics.settled()
    return reply


def by_name(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def events(pipeline: InMemoryPipeline, *topics: str) -> list[Record]:
    """Return the records of these topics, of which each has some."""
    found = [pipeline.topics.records(topic) for topic in topics]
    assert all(found)
    return [record for records in found for record in records]


async def test_turn_is_one_trace_from_its_record_to_its_vector(traced: Traced) -> None:
    pipeline, exporter = traced
    await remember(pipeline, *FOLLOWED)
    spans = exporter.get_finished_spans()
    assert {trace_id_of(span) for span in spans} == {TRACE_ID}
    named = by_name(exporter)
    remembering = named["memory.turns-Remember"]
    # Of the turn and of its item; they may end in any order.
    embedding = [span for span in spans if span.name == "memory.remembered-Embed-Understand-DrawMap"]
    embedded = [span for span in spans if span.name == "memory.embedded-Remember"]
    assert parent_of(remembering) == CALLER_SPAN_ID
    assert {parent_of(span) for span in embedding} == {span_id_of(remembering)}
    assert {parent_of(span) for span in embedded} == {span_id_of(span) for span in embedding}


async def test_spans_tell_neither_users_nor_texts(traced: Traced) -> None:
    pipeline, exporter = traced
    message = turn_message(SECRET, "t-1", user="ana@example.org")
    await pipeline.ask(pipeline.names.turns, message, FOLLOWED)
    await pipeline.ask(pipeline.names.turns, {**message, "content": 4711}, FOLLOWED)
    await pipeline.topics.settled()
    told = "".join(span.to_json() for span in exporter.get_finished_spans())
    assert "memory.turns" in told
    assert not any(secret in told for secret in ("ana@", "4711", "t-1"))


async def test_refused_record_is_marked_on_its_span(traced: Traced) -> None:
    pipeline, exporter = traced
    await pipeline.ask(pipeline.names.turns, b"nonsense", FOLLOWED)
    await pipeline.topics.settled()
    attributes = by_name(exporter)["memory.turns-Remember"].attributes or {}
    assert attributes["error.type"] == "invalid_json"


@pytest.mark.parametrize(
    "broken", [b"", b"nonsense", b"\xff\xfe", b"00-" + b"0" * 32 + b"-" + b"0" * 16 + b"-01", b"0" * 100_000, None]
)
async def test_broken_traceparent_costs_nothing(traced: Traced, broken: bytes | None) -> None:
    pipeline, exporter = traced
    with capture_logs() as lines:
        reply = await remember(pipeline, ("traceparent", broken), ("tracestate", b"\xff"), ("request_id", b"a\nb"))
    assert reply["status"] == "ok"
    assert lines == []
    assert pipeline.dead_letters() == []
    spans = exporter.get_finished_spans()
    assert len({trace_id_of(span) for span in spans}) == 1
    assert parent_of(by_name(exporter)["memory.turns-Remember"]) is None
    carried = {name for event in events(pipeline, pipeline.names.remembered) for name, _ in event.headers}
    assert carried == {"traceparent"}


async def test_trace_is_carried_on_without_an_sdk(pipeline: InMemoryPipeline) -> None:
    await remember(pipeline, *FOLLOWED, ("tracestate", b"vendor=1"))
    expected = {*FOLLOWED, ("tracestate", b"vendor=1")}
    for event in events(pipeline, pipeline.names.remembered, pipeline.names.embedded):
        assert set(event.headers) == expected


async def test_events_of_a_plain_record_have_no_headers(pipeline: InMemoryPipeline) -> None:
    await remember(pipeline, *FOLLOWED)
    await pipeline.remember("Tea, please.")
    await pipeline.topics.settled()
    for topic in (pipeline.names.remembered, pipeline.names.embedded):
        assert pipeline.topics.records(topic)[-1].headers == ()


def reports_in(record: Record) -> list[dict[str, Any]]:
    report = json.loads(record.value or b"")
    return [report, *report.get("also", ())]


async def test_each_event_of_a_batch_carries_on_its_own_trace(pipeline: InMemoryPipeline) -> None:
    for number in range(20):
        headers = () if number % 2 else (("request_id", b"r%d" % number),)
        turn = turn_message(f"Note {number}", f"n-{number}")
        await pipeline.publish(pipeline.names.turns, turn, headers=headers)
    await pipeline.topics.settled()
    texts = {memory.memory_id: memory.text for memory in pipeline.memories.all()}
    found = {
        texts[report["memory_id"]]: event.header("request_id")
        for event in events(pipeline, pipeline.names.embedded)
        for report in reports_in(event)
    }
    assert found == {f"Note {number}": None if number % 2 else b"r%d" % number for number in range(20)}


async def test_log_lines_have_request_and_trace(pipeline: InMemoryPipeline) -> None:
    with capture_logs(processors=[add_request_fields]) as lines:
        await pipeline.ask(pipeline.names.turns, b"nonsense", FOLLOWED)
        await pipeline.ask(pipeline.names.turns, b"nonsense")
    [followed, plain] = [line for line in lines if line["event"] == "record refused"]
    assert followed["request_id"] == "r-1"
    assert followed["trace_id"] == TRACE_ID
    assert not {"request_id", "trace_id"} & set(plain)


async def test_event_that_fails_later_is_logged_with_its_request(pipeline: InMemoryPipeline) -> None:
    await pipeline.publish(pipeline.names.embedded, b"nonsense", headers=FOLLOWED)
    with capture_logs(processors=[add_request_fields]) as lines:
        await pipeline.topics.settled()
    [line] = [line for line in lines if line["event"] == "event of an internal topic refused"]
    assert line["request_id"] == "r-1"


async def test_headers_of_moved_and_refused_records_stay_as_they_are(pipeline: InMemoryPipeline) -> None:
    wrong = (partition_of(b"u1", pipeline.partitions) + 1) % pipeline.partitions
    await pipeline.publish(pipeline.names.turns, turn_message("Tea.", "t-2"), headers=FOLLOWED, partition=wrong)
    await pipeline.publish(pipeline.names.turns, b"nonsense", headers=FOLLOWED)
    await pipeline.topics.settled()
    [moved] = [record for record in pipeline.topics.records(pipeline.names.turns) if record.header(MOVED_FROM)]
    assert moved.headers[:-1] == FOLLOWED
    [letter] = pipeline.dead_letters()
    assert letter.headers[: len(FOLLOWED)] == FOLLOWED
    assert {name for name, _ in letter.headers[len(FOLLOWED) :]} == {
        f"dead_letter_{what}" for what in ("topic", "partition", "offset", "code", "reason", "time")
    }


async def test_command_and_what_it_changes_are_one_trace(traced: Traced) -> None:
    pipeline, exporter = traced
    remembered = await remember(pipeline)
    exporter.clear()
    forget = command_message("forget", memory_id=remembered["result"]["memory_id"])
    reply = await pipeline.ask(pipeline.names.commands, forget, FOLLOWED)
    await pipeline.topics.settled()
    assert reply["status"] == "ok", reply
    assert {trace_id_of(span) for span in exporter.get_finished_spans()} == {TRACE_ID}
    assert {"memory.changes-Remember-DrawMap", "memory.remembered-Embed-Understand-DrawMap"} <= set(by_name(exporter))


async def test_reply_has_no_header_of_the_trace(traced: Traced) -> None:
    pipeline, _ = traced
    await remember(pipeline, *FOLLOWED)
    [reply] = pipeline.topics.records(pipeline.names.replies)
    assert [name for name, _ in reply.headers] == ["correlation_id"]
