"""A worker whose queue asks a language model, and a queue that polls without a pause."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from streams.flow.background import asking_model
from tests.harnesses.model_queue import ModelQueueHarness


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poll for pending records without a pause."""
    monkeypatch.setattr(asking_model, "PENDING_POLL_INTERVAL_S", 0.0)


@pytest.fixture
async def worker(tmp_path: Path) -> AsyncIterator[ModelQueueHarness]:
    worker = ModelQueueHarness(tmp_path)
    yield worker
    worker.words.close()
