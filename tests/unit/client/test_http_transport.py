"""The transport over HTTP: what it sends, and what becomes of answers that are no success."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from modestream_client import (
    HttpMemoryClient,
    MemoryClientError,
    MemoryClosed,
    MemoryServiceError,
    MemoryTimeout,
    MemoryUnreachable,
)

Answers = Callable[[httpx.Request], httpx.Response]


def problem(status: int, code: str, **more: Any) -> httpx.Response:
    return httpx.Response(status, json={"code": code, "detail": "a sentence", **more})


class Gateway:
    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.asked: list[httpx.Request] = []

    def client(self, **how: Any) -> HttpMemoryClient:
        connections = httpx.AsyncClient(transport=httpx.MockTransport(self._answer))
        return HttpMemoryClient("http://gateway/", **{"user_id": "u1", "client": connections, **how})

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/me":
            return httpx.Response(200, json={})
        self.asked.append(request)
        return self.answers(request)


async def failure(answer: httpx.Response) -> MemoryClientError:
    async with Gateway(lambda _: answer).client() as memory:
        with pytest.raises(MemoryClientError) as raised:
            await memory.retrieve("x", scope={"team": "red"})
    return raised.value


async def test_search_is_a_body_and_a_list_is_a_query() -> None:
    gateway = Gateway(lambda _: httpx.Response(200, json={"items": [], "next": None, "total": 0, "hits": []}))
    async with gateway.client(key="ms_1", timeout=7, headers=lambda: {"traceparent": "00-a"}) as memory:
        await memory.retrieve("x", projects=["p1", "p2"], read_after="1:2")
        await memory.list_memories(projects=["p1", "p2"], include_superseded=True)
    search, listed = gateway.asked
    body = json.loads(search.content)
    assert body["project_id"] == ["p1", "p2"]
    assert body["read_after"] == "1:2"
    assert body["query"] == "x"
    assert not {"schema", "scope", "user_id", "mode"} & set(body)
    assert search.headers["authorization"] == "Bearer ms_1"
    assert search.headers["prefer"] == "wait=7"
    assert search.headers["traceparent"] == "00-a"
    assert listed.url.path == "/v1/users/u1/memories"
    assert listed.url.params.get_list("project_id") == ["p1", "p2"]
    assert listed.url.params["include_superseded"] == "true"


@pytest.mark.parametrize(
    ("answer", "code", "field"),
    [
        (problem(422, "invalid_value", field="top_k"), "invalid_value", "top_k"),
        (problem(422, "unknown_scope_field", field="team"), "unknown_scope_field", "scope.team"),
        (problem(401, "unauthenticated"), "unauthenticated", None),
        (problem(429, "too_many_requests"), "too_many_requests", None),
        (problem(503, "unavailable"), "unavailable", None),
        (httpx.Response(503, text="<html>no backend</html>"), "unavailable", None),
        (httpx.Response(502, json=["no problem"]), "internal", None),
        (httpx.Response(200, text="no JSON"), "internal", None),
        (httpx.Response(200, json={"hits": None}), "internal", None),
    ],
)
async def test_answer_that_is_no_success_is_an_error(answer: httpx.Response, code: str, field: str | None) -> None:
    error = await failure(answer)
    assert isinstance(error, MemoryServiceError)
    assert error.code == code
    assert error.field == field


@pytest.mark.parametrize("answer", [problem(504, "timeout"), httpx.Response(504, text="proxy")])
async def test_504_is_a_timeout(answer: httpx.Response) -> None:
    assert isinstance(await failure(answer), MemoryTimeout)


async def test_silent_gateway_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modestream_client.http.client.ANSWER_MARGIN_S", 0.05)

    async def silent(request: httpx.Request) -> httpx.Response:
        if request.url.path != "/v1/me":
            await asyncio.Event().wait()
        return httpx.Response(200, json={})

    connections = httpx.AsyncClient(transport=httpx.MockTransport(silent))
    async with HttpMemoryClient("http://gateway", user_id="u1", client=connections) as memory:
        with pytest.raises(MemoryTimeout, match="retry is safe"):
            await memory.remember("x", timeout=0.05)


async def test_gateway_that_is_not_there_is_unreachable() -> None:
    with pytest.raises(MemoryUnreachable, match="is it up"):
        async with HttpMemoryClient("http://127.0.0.1:1", user_id="u1"):
            pass


async def test_unknown_key_is_told_at_the_start() -> None:
    connections = httpx.AsyncClient(transport=httpx.MockTransport(lambda _: problem(401, "unauthenticated")))
    with pytest.raises(MemoryServiceError, match="unauthenticated"):
        async with HttpMemoryClient("http://gateway", key="ms_wrong", client=connections):
            pass


async def test_call_outside_of_its_block_raises() -> None:
    with pytest.raises(MemoryClosed, match="async with"):
        await HttpMemoryClient("http://gateway", user_id="u1").remember("x")


async def test_run_beyond_a_wait_is_begun_and_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modestream_client.http.client.POLL_INTERVAL_S", 0)
    left = iter([202, 202, 200])
    job = {"job_id": "rebuild-0-1", "processed": 4, "skipped": 0, "failed": 0}
    # An address of another host: the key must not go there.
    away = {"Location": "http://elsewhere/v1/users/u1/jobs/rebuild-0-1"}
    gateway = Gateway(lambda _: httpx.Response(next(left), json=job, headers=away))
    async with gateway.client(key="ms_1") as memory:
        assert (await memory.run_job("rebuild", timeout=600)).processed == 4
    begun, *asked = gateway.asked
    assert begun.headers["prefer"] == "respond-async"
    assert [(request.url.host, request.url.path) for request in asked] == [
        ("gateway", "/v1/users/u1/jobs/rebuild-0-1")
    ] * 2


async def test_own_writes_are_read_after() -> None:
    turn = {"memory_id": "m", "turn_id": "t", "mode": "general", "mode_source": "fallback", "version": 1}
    places = iter(["3:17", "3:9"])
    gateway = Gateway(
        lambda asked: (
            httpx.Response(201, json={**turn, "duplicate": False, "read_after": next(places)})
            if asked.url.path.endswith("/turns")
            else httpx.Response(200, json={"hits": []})
        )
    )
    async with gateway.client() as memory:
        await memory.remember("x")
        await memory.remember("y")
        await memory.retrieve("x")
        await memory.retrieve("x", users="ben")
        await memory.retrieve("x", read_after=None)
    after = [json.loads(request.content).get("read_after") for request in gateway.asked[2:]]
    assert after == ["3:17", None, None]


async def test_close_fails_what_waits() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        if b"/v1/me" in request:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}")
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with HttpMemoryClient(f"http://127.0.0.1:{port}", user_id="u1", timeout=5) as memory:
        waiting = asyncio.create_task(memory.retrieve("x"))
        await asyncio.sleep(0.1)
    with pytest.raises(MemoryClosed):
        await waiting
    server.close()
