"""What many tests of the map begin with."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.stream.in_memory_map import InMemoryMap


@pytest.fixture
async def the_map(tmp_path: Path) -> AsyncIterator[InMemoryMap]:
    """A map that runs, with nothing in it."""
    async with InMemoryMap(tmp_path).running() as running:
        yield running
