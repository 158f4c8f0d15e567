"""Replies parsed into results and errors."""

import json
from typing import Any

import pytest
from modestream_client.answers import Notice, Reply, answer_of, remembered_of, reply_of
from modestream_client.failures import MemoryServiceError
from modestream_client.records import Written

HIT: dict[str, Any] = {
    "memory_id": "m1",
    "turn_id": "t-17",
    "conversation_id": "c1",
    "scope": {"user_id": "u1", "project_id": "p1"},
    "type": "episodic",
    "mode": "code",
    "mode_source": "model",
    "role": "user",
    "speaker": "Ana",
    "text": "The deploy target is fly.io now.",
    "occurred_at": "2026-03-01T09:30:00Z",
    "score": 0.81,
    "evidence": [{"turn_id": "t-17", "start": 0, "end": 32}],
    "version": 1,
    "embedding_status": "ready",
}

TOLD = {
    "memory_id": "m1",
    "turn_id": "t-17",
    "mode": "general",
    "mode_source": "fallback",
    "version": 2,
    "duplicate": False,
}


def ok(result: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"schema": "reply.v1", "status": "ok", "result": result, **more}).encode()


def test_result_has_its_warnings() -> None:
    value = ok({"a": 1}, warnings=[{"code": "degraded", "message": "no vectors"}])
    assert reply_of(value) == Reply({"a": 1}, (Notice("degraded", "no vectors"),))


@pytest.mark.parametrize("more", [{}, {"warnings": None}, {"warnings": []}])
def test_warnings_may_be_absent(more: dict[str, Any]) -> None:
    assert reply_of(ok({}, **more)).warnings == ()


def test_unknown_fields_are_ignored() -> None:
    hit = {**HIT, "items": [], "new": {"x": 1}, "evidence": [{"turn_id": "t", "start": 0, "end": 1, "new": 1}]}
    result = {"hits": [hit], "modes": ["code"], "strategy": "hybrid", "new": [1]}
    reply = reply_of(ok(result, new=1, warnings=[{"code": "c", "message": "m", "new": 1}]))
    answer = answer_of(reply)
    assert [found.memory_id for found in answer.hits] == ["m1"]
    assert answer.warnings == (Notice("c", "m"),)
    assert remembered_of(Reply({**TOLD, "new": 1}), Written(3, 17)).memory_id == "m1"


def test_error_reply_raises_its_code_message_and_field() -> None:
    error = {"code": "invalid_value", "message": "too short", "field": "scope.user_id", "new": 1}
    with pytest.raises(MemoryServiceError) as raised:
        reply_of(json.dumps({"schema": "reply.v1", "status": "error", "error": error}).encode())
    assert raised.value.code == "invalid_value"
    assert raised.value.message == "too short"
    assert raised.value.field == "scope.user_id"


@pytest.mark.parametrize(
    "value",
    [b"", b"{", b"[]", b"\xff", b'"ok"', b'{"status":"ok"}', b'{"status":"error","error":"x"}', b'{"status":"?"}'],
)
def test_unreadable_reply_is_a_service_error(value: bytes) -> None:
    with pytest.raises(MemoryServiceError, match="can't be read"):
        reply_of(value)


def test_remembered_has_reply_fields_partition_and_offset() -> None:
    remembered = remembered_of(Reply(TOLD, (Notice("forgotten", "f"),)), Written(3, 17))
    assert remembered.turn_id == "t-17"
    assert remembered.version == 2
    assert remembered.duplicate is False
    assert remembered.partition == 3
    assert remembered.offset == 17
    assert remembered.warnings == (Notice("forgotten", "f"),)


def test_answer_is_typed_down_to_its_evidence() -> None:
    result = {"hits": [HIT], "modes": ["code"], "strategy": "lexical", "diagnostics": {"took_ms": 9.1}}
    answer = answer_of(Reply(result))
    assert answer.hits[0].evidence[0].end == 32
    assert answer.hits[0].scope == {"user_id": "u1", "project_id": "p1"}
    assert answer.modes == ("code",)
    assert answer.strategy == "lexical"
    assert answer.diagnostics == {"took_ms": 9.1}


@pytest.mark.parametrize("result", [{}, {"hits": [{"memory_id": "m1"}]}, {"hits": None}])
def test_incomplete_answer_is_a_service_error(result: dict[str, Any]) -> None:
    with pytest.raises(MemoryServiceError, match="can't be read"):
        answer_of(Reply(result))


def test_incomplete_turn_reply_is_a_service_error() -> None:
    with pytest.raises(MemoryServiceError, match="memory_id"):
        remembered_of(Reply({}), Written(0, 0))
