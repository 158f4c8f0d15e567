"""Fixtures: OpenAI's address over a wire in memory."""

from collections.abc import AsyncIterator

import pytest

from gateway.service.service import MemoryService
from tests.fakes.wire import FakeWire
from tests.worlds.openai_address import OpenAiAddress, openai_address


@pytest.fixture
async def address(wire: FakeWire) -> AsyncIterator[OpenAiAddress]:
    async with openai_address(MemoryService(wire)) as served:
        yield served
