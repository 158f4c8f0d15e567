"""What many tests of the map begin with."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from streams.flow import maintaining, run_under_way, scheduling
from tests.stream.in_memory_map import InMemoryMap


@pytest.fixture
async def the_map(tmp_path: Path) -> AsyncIterator[InMemoryMap]:
    """A map that runs, with nothing in it."""
    async with InMemoryMap(tmp_path).running() as running:
        yield running


@pytest.fixture(autouse=True)
def _hurry() -> Iterator[None]:
    """What looks again and again looks every millisecond. By its own patches, as Hypothesis takes no shared ones."""
    with pytest.MonkeyPatch.context() as patched:
        for looking in (maintaining, run_under_way, scheduling):
            patched.setattr(looking, "LOOK_EVERY_S", 0.001)
        yield
