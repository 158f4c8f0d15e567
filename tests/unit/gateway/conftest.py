"""Fixtures: a wire in memory, and the HTTP door over it."""

from collections.abc import AsyncIterator

import httpx
import pytest

from gateway.http.app import create_app
from gateway.http.limits import Limits
from gateway.service.service import MemoryService
from tests.fakes.wire import FakeWire
from tests.worlds.gateway import always_ready, http_over


@pytest.fixture
def wire(request: pytest.FixtureRequest) -> FakeWire:
    """An empty wire."""
    made = request.getfixturevalue("module_wire") if shares_app(request) else FakeWire()
    made.clear()
    return made


@pytest.fixture
async def http(request: pytest.FixtureRequest, wire: FakeWire) -> AsyncIterator[httpx.AsyncClient]:
    if shares_app(request):
        yield request.getfixturevalue("module_http")
        return
    async with http_over(wire) as client:
        yield client


def shares_app(request: pytest.FixtureRequest) -> bool:
    """True in modules with `SHARES_APP`: an app takes 0.1 s, and their requests leave nothing in it."""
    return hasattr(request.module, "SHARES_APP")


@pytest.fixture(scope="module")
def module_wire() -> FakeWire:
    return FakeWire()


@pytest.fixture(scope="module")
def module_http(module_wire: FakeWire) -> httpx.AsyncClient:
    limits = Limits(reads_per_second=1e6, writes_per_second=1e6)
    app = create_app(MemoryService(module_wire), always_ready, limits=limits)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")
