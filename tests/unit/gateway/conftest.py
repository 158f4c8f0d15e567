"""Fixtures: a wire in memory, and the HTTP door over it."""

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.fakes.wire import FakeWire
from tests.worlds.gateway import http_over


@pytest.fixture
def wire() -> FakeWire:
    return FakeWire()


@pytest.fixture
async def http(wire: FakeWire) -> AsyncIterator[httpx.AsyncClient]:
    async with http_over(wire) as client:
        yield client
