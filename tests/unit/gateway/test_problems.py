"""Errors: every one is a problem with the contract's code, and none tells of brokers, topics or files."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from modestream_client import MemoryServiceError, MemoryTimeout, MemoryUnreachable

from gateway.http.calls import JSONAnswer
from gateway.http.problems import STATUS_OF, TITLES
from tests.fakes.wire import FakeWire

SECRET = "Kafka at 10.0.0.7:9092 on memory.turns, see /data/run"
TURN = {"conversation_id": "c1", "role": "user", "content": "hello"}

SHARES_APP = True


def test_every_code_has_a_title_and_a_status() -> None:
    assert TITLES.keys() == STATUS_OF.keys()


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (MemoryServiceError("not_found", "no memory", "arguments.memory_id"), 404, "not_found"),
        (MemoryServiceError("conflict", "there is one"), 409, "conflict"),
        (MemoryServiceError("selector_refused", "too many"), 422, "selector_refused"),
        (MemoryServiceError("too_large", "too long"), 413, "too_large"),
        (MemoryServiceError("not_allowed", SECRET), 403, "not_allowed"),
        (MemoryServiceError("internal", SECRET), 502, "internal"),
        (MemoryServiceError("unknown_command", SECRET), 502, "internal"),
        (MemoryServiceError("unavailable", SECRET), 503, "unavailable"),
        (MemoryUnreachable(SECRET), 503, "unavailable"),
        (MemoryTimeout(SECRET), 504, "timeout"),
    ],
)
async def test_an_error_of_the_service_is_a_problem(
    http: httpx.AsyncClient, wire: FakeWire, failure: Exception, status: int, code: str
) -> None:
    wire.failure = failure
    answer = await http.post("/v1/users/u1/memories/search", json={"query": "q"})
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["code"] == code
    assert told["status"] == status
    # A random id, which may have any digits.
    assert told.pop("request_id") == answer.headers["x-request-id"]
    assert not any(word in json.dumps(told) for word in ("Kafka", "memory.turns", "/data", "9092"))
    assert ("retry-after" in answer.headers) is (status in (503, 504))


async def test_a_turn_without_an_answer_may_be_stored(http: httpx.AsyncClient, wire: FakeWire) -> None:
    wire.failure = MemoryTimeout(SECRET)
    answer = await http.post("/v1/users/u1/turns", json=TURN)
    assert answer.status_code == 504
    assert "same turn_id" in answer.json()["detail"]


async def test_a_change_without_an_answer_may_be_made(http: httpx.AsyncClient, wire: FakeWire) -> None:
    wire.failure = MemoryTimeout(SECRET)
    answer = await http.put("/v1/users/u1/default-mode", json={"name": "x"})
    assert "may still be carried out; send the same request again" in answer.json()["detail"]


async def test_a_field_is_named_as_the_caller_named_it(http: httpx.AsyncClient, wire: FakeWire) -> None:
    wire.failure = MemoryServiceError("invalid_value", "no such embedder", "arguments.embedder")
    answer = await http.put("/v1/users/u1/modes/notes", json={"embedder": "never"})
    assert answer.json()["field"] == "embedder"


async def test_a_mode_in_the_path_is_not_found_and_one_in_the_body_is_invalid(
    http: httpx.AsyncClient, wire: FakeWire
) -> None:
    wire.failure = MemoryServiceError("unknown_mode", "no mode 'x'", "arguments.name")
    assert (await http.delete("/v1/users/u1/modes/x?memories=forget")).status_code == 404
    assert (await http.put("/v1/users/u1/default-mode", json={"name": "x"})).status_code == 422


async def test_a_defect_is_a_problem_without_its_text(http: httpx.AsyncClient, wire: FakeWire) -> None:
    wire.failure = RuntimeError(SECRET)
    answer = await http.post("/v1/users/u1/memories/search", json={"query": "q"})
    assert answer.status_code == 502
    assert "Kafka" not in answer.text


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/v1/users/u1/turns/", 404, "not_found"),
        ("GET", "/v1/users//memories", 404, "not_found"),
        ("DELETE", "/v1/users/", 404, "not_found"),
        ("PUT", "/v1/users/u1/turns", 405, "method_not_allowed"),
        ("GET", "/v1/users/%FF/memories", 422, "invalid_value"),
    ],
)
async def test_what_is_not_there_is_a_problem(
    http: httpx.AsyncClient, method: str, path: str, status: int, code: str
) -> None:
    answer = await http.request(method, path)
    assert answer.status_code == status
    assert answer.json()["code"] == code


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"x"', b"\xff\xfe", b"null", b'{"query": NaN}'])
async def test_what_is_no_json_object_is_refused(http: httpx.AsyncClient, wire: FakeWire, content: bytes) -> None:
    answer = await http.post("/v1/users/u1/memories/search", content=content)
    assert answer.status_code == 400
    assert answer.json()["code"] == "invalid_json"
    assert wire.sent == []


async def test_a_body_beyond_the_limit_is_refused(http: httpx.AsyncClient) -> None:
    answer = await http.post("/v1/users/u1/turns", content=b"x" * (16 * 1024 * 1024 + 1))
    assert answer.status_code == 413
    assert answer.json()["code"] == "too_large"


async def test_a_body_that_grows_beyond_the_limit_is_refused(http: httpx.AsyncClient) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 1_000_000

    answer = await http.post("/v1/users/u1/turns", content=chunks())
    assert answer.status_code == 413
    assert answer.json()["code"] == "too_large"


async def test_the_id_of_a_request_is_taken_over_unless_it_could_forge_a_log(http: httpx.AsyncClient) -> None:
    assert (await http.get("/live", headers={"X-Request-Id": "abc-1"})).headers["x-request-id"] == "abc-1"
    forged = await http.get("/live", headers={"X-Request-Id": "a b\tERROR"})
    assert forged.headers["x-request-id"] != "a b\tERROR"


NESTED: dict[str, Any] = {}
for _ in range(150):
    NESTED = {"a": NESTED}


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 2**200, 1e-7, 1e22, 0.1, "\x7f\u2028é\0", NESTED])
def test_stored_value_is_answered_as_it_is(value: object) -> None:
    assert json.loads(bytes(JSONAnswer({"metadata": value}).body)) == {"metadata": value}


def test_order_of_names_is_kept() -> None:
    assert JSONAnswer({"b": 1, "a": 2}).body == b'{"b":1,"a":2}'


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_number_that_json_has_no_word_for_is_null(value: float) -> None:
    assert JSONAnswer({"metadata": value}).body == b'{"metadata":null}'
