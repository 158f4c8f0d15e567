"""A registry of tiny models: `general`, and `tiny` with two words."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from streams.adapters.embedding.catalog.registry import EmbedderRegistry
from tests.harnesses.embedder_registry import registry_in


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the model `general`, whose process the registries of all tests connect to: none starts its own."""
    folder = tmp_path_factory.mktemp("shared")
    keeper = registry_in(folder, folder)
    yield folder
    asyncio.run(keeper.close())


@pytest.fixture
async def registry(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbedderRegistry]:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    made = registry_in(shared, tmp_path)
    yield made
    await made.close()
