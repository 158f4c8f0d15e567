"""Fixtures of tests of the whole pipeline."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from streams.flow.background import scheduling
from streams.flow.consolidation import evolving
from tests.worlds.in_memory_pipeline import InMemoryPipeline


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    async with InMemoryPipeline(tmp_path).running() as running:
        yield running


@pytest.fixture(autouse=True)
def _hurry() -> Iterator[None]:
    """Poll consolidations every millisecond, but not jobs, which would end before a test sees them run.

    It does not use `monkeypatch`, since Hypothesis rejects function-scoped fixtures.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(evolving, "RUN_POLL_INTERVAL_S", 0.001)
        patched.setattr(scheduling, "POLL_INTERVAL_S", 0.001)
        yield
