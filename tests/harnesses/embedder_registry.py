"""What tests of the registry do: name modes, wait for models, look at processes."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from schemas.failures import ModelMissing
from schemas.state.modes import GENERAL, ConfiguredEmbedder, Mode
from streams.adapters.embedding.catalog.mode_embedders import ModeEmbedder
from streams.adapters.embedding.catalog.model_loading import LoadBackoff
from streams.adapters.embedding.catalog.presets import CatalogEntry, build_catalog
from streams.adapters.embedding.catalog.registry import EmbedderRegistry
from streams.adapters.embedding.inference.local_model import LocalModel
from tests.builders.tiny_models import write_tiny_model

TINY = Mode(name="any", embedder="tiny", embedding_dim=32)
JOURNAL = Mode(name="any", embedder="BAAI/bge-base-en-v1.5", embedding_dim=768)


def general_in(shared: Path) -> CatalogEntry:
    folder = shared / "general"
    if not folder.exists():  # Else its process may just be reading it.
        write_tiny_model(folder, 8)
    return CatalogEntry(GENERAL, LocalModel("all-MiniLM-L6-v2", folder, 8, "fp32"))


def registry_in(shared: Path, folder: Path) -> EmbedderRegistry:
    """Return a registry with `general` of the shared folder, which has the processes too, and `tiny` of its folder."""
    write_tiny_model(folder / "tiny", 32, words=("red", "house"))
    entries = build_catalog(folder, {"tiny": ConfiguredEmbedder(path=folder / "tiny", dim=32)}, "int8")
    backoff = LoadBackoff(0.01, 0.02)
    return EmbedderRegistry(entries | {GENERAL: general_in(shared)}, shared / "run", threads=1, backoff=backoff)


class Waiting:
    """Records which models are loaded, and waits for them."""

    def __init__(self, registry: EmbedderRegistry) -> None:
        self.registry = registry
        self.loaded: asyncio.Queue[str] = asyncio.Queue()
        registry.on_loaded = self.loaded.put_nowait

    async def until(self, name: str) -> None:
        while await self.loaded.get() != name:
            pass


def pids(registry: EmbedderRegistry) -> list[int]:
    models = registry._models.values()
    return [model._process._child._process.pid for model in models if model._process]


async def ready(registry: EmbedderRegistry, mode: Mode) -> ModeEmbedder:
    waiting = Waiting(registry)
    try:
        found = registry.of(mode)
    except ModelMissing:
        described = registry.described(mode.embedder)
        assert described
        await waiting.until(described.name)
        found = registry.of(mode)
    assert isinstance(found, ModeEmbedder)
    return found


async def until_state(registry: EmbedderRegistry, name: str, state: str) -> None:
    async with asyncio.timeout(180):
        while registry.status()[name]["state"] != state:
            await asyncio.sleep(0.01)


async def until_ended(processes: Sequence[int]) -> None:
    """Wait until processes have ended: each does by itself once no worker is connected, and serves until then."""
    async with asyncio.timeout(30):
        while any(Path(f"/proc/{pid}").exists() for pid in processes):
            await asyncio.sleep(0.01)
