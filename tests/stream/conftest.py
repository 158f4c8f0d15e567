"""What many tests of the map begin with."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from streams.flow.background import scheduling
from streams.flow.consolidation import run_under_way
from tests.worlds.in_memory_pipeline import InMemoryPipeline


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    """A map that runs, with nothing in it."""
    async with InMemoryPipeline(tmp_path).running() as running:
        yield running


@pytest.fixture(autouse=True)
def _hurry() -> Iterator[None]:
    """Poll consolidations every millisecond. Not jobs: a test that waits for a running one would find it done.

    By patches of its own, as Hypothesis takes no fixture that is made anew for each test.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run_under_way, "RUN_POLL_INTERVAL_S", 0.001)
        patched.setattr(scheduling, "RUN_END_POLL_INTERVAL_S", 0.001)
        yield
