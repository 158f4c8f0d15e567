"""Clients of the pipeline, the same calls over each transport."""

from collections.abc import AsyncIterator, Callable

import pytest
from modestream_client import MemoryCalls

from tests.worlds.in_memory_client import client_of
from tests.worlds.in_memory_gateway import http_clients_of
from tests.worlds.in_memory_pipeline import InMemoryPipeline

ClientOf = Callable[[str], MemoryCalls]
"""Returns a client of a user."""


@pytest.fixture(params=["topics", "http"])
async def client_as(pipeline: InMemoryPipeline, request: pytest.FixtureRequest) -> AsyncIterator[ClientOf]:
    if request.param == "topics":
        yield lambda user_id: client_of(pipeline, user_id=user_id)
    else:
        async with http_clients_of(pipeline) as client_as:
            yield client_as


@pytest.fixture
def memory(client_as: ClientOf) -> MemoryCalls:
    """A client of the user u1."""
    return client_as("u1")
