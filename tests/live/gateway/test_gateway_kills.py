"""Turns over HTTP while gateway and worker are killed, and what the gateway answers while one of them is away."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import httpx

from streams.up.layout import free_port
from tests.worlds.live.broker import running_broker
from tests.worlds.live.gateways import gateway_on
from tests.worlds.live.processes import Deployment, deployed

TURNS = 40
AT_ONCE = 8
KILLS_AT = (10, 25)
"""Accepted turns at which the worker and the gateway are killed."""

INTERNALS = ("127.0.0.1", "test-", "memory.", "Kafka", "kafka", "broker", "topic")
"""What no answer may name."""

Json = dict[str, Any]


def text_of(number: int) -> str:
    return f"The box crate{number}x was put on the shelf in the hall."


async def send(http: httpx.AsyncClient, number: int, refusals: list[httpx.Response]) -> Json:
    """Send a turn, the same request again after each failure; return its answer."""
    body: Json = {"conversation_id": "c1", "role": "user", "content": text_of(number)}
    headers = {"Prefer": "wait=4"}
    if number % 2:
        body["turn_id"] = f"t-{number}"
    else:
        headers["Idempotency-Key"] = f"key-{number}"
        body["occurred_at"] = "2026-03-01T09:30:00Z"
    while True:
        try:
            answer = await http.post(f"/v1/users/u{number % 4}/turns", json=body, headers=headers)
        except httpx.TransportError:
            await asyncio.sleep(0.1)
            continue
        if answer.is_success:
            return dict(answer.json())
        assert answer.status_code in (503, 504), answer.text
        refusals.append(answer)
        await asyncio.sleep(0.1)


async def stored(http: httpx.AsyncClient) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for user in range(4):
        query: Json = {"limit": 200, "types": "episodic"}
        page = (await http.get(f"/v1/users/u{user}/memories", params=query, headers={"Prefer": "wait=30"})).json()
        for item in page["items"]:
            found.setdefault(item["text"], []).append(item["memory_id"])
    return found


async def test_each_turn_over_http_is_stored_once_whatever_is_killed(deployment: Deployment, tmp_path: Path) -> None:
    worker = await deployment.ready()
    async with gateway_on(deployment.environment, tmp_path) as (gateway, http):
        accepted: dict[int, Json] = {}
        refusals: list[httpx.Response] = []
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(number: int) -> None:
            async with gate:
                accepted[number] = await send(http, number, refusals)

        async def until(count: int) -> None:
            while len(accepted) < count:
                await asyncio.sleep(0.01)

        publishing = asyncio.gather(*(one(number) for number in range(TURNS)))
        await until(KILLS_AT[0])
        await worker.kill()
        deployment.start()
        await until(KILLS_AT[1])
        gateway.kill()
        gateway.start()
        await publishing
        assert {text_of(number): [memory["memory_id"]] for number, memory in accepted.items()} == await stored(http)
        check(refusals)


def check(refusals: list[httpx.Response]) -> None:
    """Check what callers were told of an outage."""
    for answer in refusals:
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.headers["content-type"] == "application/problem+json"
        assert not [word for word in INTERNALS if word in answer.text], answer.text


async def test_outages_show_and_end_without_a_restart_of_the_gateway(models: Path, tmp_path: Path) -> None:
    port = free_port()
    with running_broker(tmp_path / "broker", port) as broker, deployed(broker.bootstrap, tmp_path, models) as system:
        worker = await system.ready()
        async with gateway_on(system.environment, tmp_path) as (gateway, http):
            assert (await send(http, 1, []))["duplicate"] is False
            worker.pause()
            began = time.monotonic()
            late = await http.get("/v1/users/u1/memories", headers={"Prefer": "wait=1"})
            assert late.status_code == 504
            assert 0.9 < time.monotonic() - began < 3
            worker.resume()
            os.kill(broker.pid, signal.SIGKILL)
            away = await http.post("/v1/users/u1/memories/search", json={"query": "x"}, headers={"Prefer": "wait=3"})
            assert away.status_code == 503
            check([late, away])
            await gateway.has_status(http, "/ready", 503)
            assert (await http.get("/live")).status_code == 200
            pid = gateway.process.pid
            with running_broker(tmp_path / "broker", port):
                await gateway.has_status(http, "/ready", 200)
                assert (await send(http, 1, []))["duplicate"] is True
                assert gateway.process.pid == pid
                assert gateway.process.poll() is None


async def test_event_stream_resumes_and_holds_up_no_end(deployment: Deployment, tmp_path: Path) -> None:
    await deployment.ready()
    async with gateway_on(deployment.environment, tmp_path) as (gateway, http):
        await send(http, 1, [])
        async with http.stream("GET", "/v1/users/u1/events") as stream:
            lines = stream.aiter_lines()
            first = [await anext(lines) for _ in range(3)]
            place = next(line.removeprefix("id: ") for line in first if line.startswith("id: "))
            await send(http, 5, [])
            await send(http, 9, [])
            ids = await remembered(lines, 2)
        async with http.stream("GET", "/v1/users/u1/events", headers={"Last-Event-ID": place}) as stream:
            assert await remembered(stream.aiter_lines(), 2) == ids
            began = time.monotonic()
            code = await asyncio.to_thread(gateway.end, 15)
            assert code == 0
            assert time.monotonic() - began < 8


async def remembered(lines: Any, count: int) -> list[str]:
    found: list[str] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            line = await anext(lines)
            if line.startswith("data: ") and '"remembered"' in line:
                found.append(httpx.Response(200, content=line.removeprefix("data: ")).json()["memory_id"])
    return found


async def test_chunked_body_beyond_the_limit_is_refused(deployment: Deployment, tmp_path: Path) -> None:
    async def endless() -> Any:
        for _ in range(40):
            yield b" " * 1_000_000

    async with gateway_on(deployment.environment, tmp_path) as (gateway, http):
        answer = await http.post("/v1/users/u1/turns", content=endless())
        assert answer.status_code == 413
        assert answer.json()["code"] == "too_large"
        assert (await http.get("/live")).status_code == 200
        assert gateway.process.poll() is None
