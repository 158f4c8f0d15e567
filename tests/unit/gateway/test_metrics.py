"""The gateway's metrics: what an operator watches, and no name of a user."""

import asyncio
import urllib.request
from typing import Any

import pytest
from modestream_client import MemoryServiceError, MemoryTimeout, MemoryUnreachable
from prometheus_client import generate_latest
from starlette.datastructures import Headers

from gateway.backend.kafka import MeasuredBackend
from gateway.http.limits import Limits
from gateway.http.telemetry import metrics_served
from gateway.service.calls import Caller
from gateway.service.meters import Meters
from tests.fakes.wire import FakeWire
from tests.worlds.gateway import http_over

TURN = {"conversation_id": "c1", "role": "user", "content": "secret text"}
TURNS = "/v1/users/ana%40example.org/turns"


class OneCaller:
    """Every request comes from the same key."""

    async def caller_of(self, headers: Headers, address: str) -> Caller:
        return Caller("key-of-ana", "app")


def value(meters: Meters, name: str, **labels: str) -> float | None:
    return meters.registry.get_sample_value(f"modestream_gateway_{name}", labels)


def over(wire: FakeWire, meters: Meters, **how: Any) -> Any:
    return http_over(MeasuredBackend(wire, meters), meters=meters, **how)


async def test_requests_count_by_the_template_of_their_route(wire: FakeWire) -> None:
    meters = Meters()
    async with over(wire, meters) as http:
        await http.post(TURNS, json=TURN)
        await http.post(TURNS, json={})
        await http.get("/v1/users/ana%40example.org/nowhere")
        await http.request("ANA", "/ana")
        await http.head("/live")
    route = "/v1/users/{user_id}/turns"
    assert value(meters, "requests_total", method="POST", route=route, status="201") == 1
    assert value(meters, "requests_total", method="POST", route=route, status="422") == 1
    assert value(meters, "requests_total", method="GET", route="none", status="404") == 1
    assert value(meters, "requests_total", method="HTTP", route="none", status="404") == 1
    assert value(meters, "requests_total", method="GET", route="/live", status="200") == 1
    assert value(meters, "request_seconds_count", route=route) == 2
    assert value(meters, "service_seconds_count", topic="turns") == 1
    assert value(meters, "in_flight") == 0


async def test_no_label_tells_of_users_or_texts(wire: FakeWire) -> None:
    meters = Meters()
    async with over(wire, meters, callers=OneCaller(), limits=Limits(writes_per_second=0.5)) as http:
        for path in (TURNS, "/v1/users/ana%40example.org/memories/ana", "/ana"):
            for method in ("GET", "POST", "PATCH", "ANA"):
                await http.request(method, path, json=TURN, params={"q": "ana"})
    told = generate_latest(meters.registry).decode()
    assert "limited_total" in told
    assert "ana" not in told.lower()
    assert "secret" not in told


async def test_a_defect_counts_as_its_answer(wire: FakeWire) -> None:
    meters = Meters()
    wire.failure = RuntimeError("a defect")
    async with over(wire, meters) as http:
        assert (await http.post(TURNS, json=TURN)).status_code == 502
    assert value(meters, "requests_total", method="POST", route="/v1/users/{user_id}/turns", status="502") == 1


@pytest.mark.parametrize(
    ("failure", "name"),
    [
        (MemoryTimeout("late", is_written=True), "timeout"),
        (MemoryTimeout("late", is_written=False), "not_written"),
        (MemoryUnreachable("away"), "unreachable"),
        (MemoryServiceError("unavailable", "away"), "unavailable"),
    ],
)
async def test_round_trips_that_fail_are_counted(wire: FakeWire, failure: Exception, name: str) -> None:
    meters = Meters()
    wire.failure = failure
    async with over(wire, meters) as http:
        await http.post(TURNS, json=TURN)
    assert value(meters, "service_failures_total", topic="turns", failure=name) == 1


async def test_a_refusal_of_the_service_is_no_failure(wire: FakeWire) -> None:
    meters = Meters()
    wire.failure = MemoryServiceError("invalid_value", "no", "content")
    async with over(wire, meters) as http:
        await http.post(TURNS, json=TURN)
    counted = [
        line for line in generate_latest(meters.registry).decode().splitlines() if "service_failures_total{" in line
    ]
    assert [line for line in counted if not line.endswith(" 0.0")] == []


async def test_limits_are_counted_by_their_name(wire: FakeWire) -> None:
    meters = Meters()
    async with over(wire, meters, callers=OneCaller(), limits=Limits(writes_per_second=0.5)) as http:
        for _ in range(3):
            await http.post(TURNS, json=TURN)
    assert value(meters, "limited_total", limit="writes") == 2


async def test_it_is_served_at_a_port_of_its_own(wire: FakeWire) -> None:
    meters = Meters()
    async with over(wire, meters) as http:
        assert (await http.get("/metrics")).status_code == 404
    with metrics_served(meters, "127.0.0.1", 0) as port:
        text = await asyncio.to_thread(_read, f"http://127.0.0.1:{port}/metrics")
    assert 'modestream_gateway_requests_total{method="GET",route="none",status="404"} 1.0' in text
    with pytest.raises(OSError, match="refused"):
        await asyncio.to_thread(_read, f"http://127.0.0.1:{port}/metrics")


def _read(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        return str(answer.read().decode())
