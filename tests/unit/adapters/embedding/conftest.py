"""A registry of tiny models: `general`, and `tiny` with two words."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from schemas.state.modes import GENERAL, ConfiguredEmbedder
from streams.adapters.embedding.catalog.model_loading import LoadBackoff
from streams.adapters.embedding.catalog.presets import CatalogEntry, build_catalog
from streams.adapters.embedding.catalog.registry import EmbedderRegistry
from streams.adapters.embedding.inference.local_model import LocalModel
from tests.builders.tiny_models import write_tiny_model


@pytest.fixture
async def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbedderRegistry]:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    general = CatalogEntry(
        GENERAL, LocalModel("all-MiniLM-L6-v2", write_tiny_model(tmp_path / "general", 8), 8, "fp32")
    )
    write_tiny_model(tmp_path / "tiny", 32, words=("red", "house"))
    entries = build_catalog(tmp_path, {"tiny": ConfiguredEmbedder(path=tmp_path / "tiny", dim=32)}, "int8")
    made = EmbedderRegistry(entries | {GENERAL: general}, tmp_path / "run", threads=1, backoff=LoadBackoff(0.01, 0.02))
    yield made
    await made.close()
