"""The registry's processes: their number, restarts, and the end of all."""

import asyncio
import os
import signal
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.failures import ModelMissing, Unavailable
from schemas.models.vectors import Vector
from schemas.state.modes import GENERAL, GENERAL_MODE, ConfiguredEmbedder
from streams.adapters.embedding.catalog.mode_embedders import ModeEmbedder
from streams.adapters.embedding.catalog.model_loading import LoadBackoff
from streams.adapters.embedding.catalog.presets import CatalogEntry
from streams.adapters.embedding.catalog.registry import MAX_VIEWS, EmbedderRegistry
from streams.adapters.embedding.inference.local_model import LocalModel
from tests.builders.tiny_models import write_tiny_model
from tests.harnesses.embedder_registry import JOURNAL, TINY, Waiting, pids, ready, registry_in, until_ended


async def test_only_the_process_of_general_runs_from_the_start(registry: EmbedderRegistry) -> None:
    assert len(pids(registry)) == 1
    assert registry.status() == {"general": {"state": "loading", "error": None}}


@pytest.mark.parametrize("needed", [True, False])
async def test_multilingual_model_is_loaded_at_start_if_it_was_exported(
    registry: EmbedderRegistry, tmp_path: Path, needed: bool
) -> None:
    others = CatalogEntry("multilingual-small", LocalModel("multilingual-e5-small", tmp_path / "others", 8, "int8"))
    registry._entries = {**registry._entries, GENERAL: replace(registry._entries[GENERAL], multilingual=others)}
    if needed:
        write_tiny_model(tmp_path / "others", 8)
    await registry.start()
    assert ("multilingual-small" in registry.status()) is needed


async def test_loading_model_is_reported_as_loading(registry: EmbedderRegistry) -> None:
    with pytest.raises(ModelMissing, match="'tiny' is missing: its model is being loaded"):
        registry.of(TINY)
    assert registry.status()["tiny"] == {"state": "loading", "error": None}


async def test_all_modes_of_a_model_share_one_process(registry: EmbedderRegistry) -> None:
    await ready(registry, TINY)
    for prefix in ("", "a", "b"):
        embedder = registry.of(TINY.model_copy(update={"passage_prefix": prefix, "query_prefix": prefix}))
        await asyncio.gather(embedder.passage("red"), embedder.query("red"))
    assert len(pids(registry)) == 2


async def test_text_of_one_mode_is_not_embedded_again_for_another(registry: EmbedderRegistry) -> None:
    """The classifier of interaction modes reads turns that `general` has just embedded."""
    await (await ready(registry, TINY)).passage("red")
    process = registry._models["tiny"].loaded
    assert process is not None
    answered = process._child.responses
    await registry.of(TINY.model_copy(update={"name": "other", "query_prefix": "a"})).passage("red")
    assert process._child.responses == answered


async def test_equal_modes_share_one_embedder_object(registry: EmbedderRegistry) -> None:
    embedder = await ready(registry, TINY)
    assert registry.of(TINY) is embedder
    assert registry.of(TINY.model_copy(update={"name": "other"})) is embedder


async def test_number_of_cached_views_is_bounded(registry: EmbedderRegistry) -> None:
    await ready(registry, TINY)
    for number in range(MAX_VIEWS + 10):
        registry.of(TINY.model_copy(update={"query_prefix": str(number)}))
    assert len(registry._views) <= MAX_VIEWS


async def test_preset_folder_below_the_models_is_used(registry: EmbedderRegistry, tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "journal", 768, words=("red",))
    (folder / "model.onnx").rename(folder / "model_optimized.onnx")
    fingerprint = (await ready(registry, JOURNAL)).fingerprint
    assert fingerprint.embedder == "bge-base-en-v1.5"
    assert fingerprint.dim == 768
    assert fingerprint.pooling == "cls"


async def test_preset_without_files_is_missing_with_instructions(registry: EmbedderRegistry) -> None:
    while registry.status().get("journal", {}).get("state") != "failed":
        with pytest.raises(ModelMissing):
            registry.of(JOURNAL)
        await asyncio.sleep(0.02)
    with pytest.raises(ModelMissing, match=r"put its files into MODEL_DIR/journal"):
        registry.of(JOURNAL)


async def test_damaged_model_is_missing_until_it_is_repaired(registry: EmbedderRegistry, tmp_path: Path) -> None:
    (tmp_path / "tiny" / "model.onnx").write_bytes(b"cut off")
    loading = asyncio.create_task(ready(registry, TINY))
    while not (error := registry.status().get("tiny", {}).get("error")):
        await asyncio.sleep(0.02)
    assert "model.onnx" in error
    write_tiny_model(tmp_path / "tiny", 32, words=("red", "house"))
    assert (await (await loading).passage("red")).pooled.shape == (32,)
    assert registry.status()["tiny"] == {"state": "ready", "error": None}


async def test_killed_process_is_unavailable_and_restarted(registry: EmbedderRegistry) -> None:
    embedder = await ready(registry, TINY)
    before = await embedder.query("red")
    os.kill(pids(registry)[-1], signal.SIGKILL)
    assert np.array_equal(before.pooled, await answer(embedder, "red"))
    assert registry.of(TINY) is embedder


async def answer(embedder: ModeEmbedder, text: str) -> Vector:
    while True:
        try:
            return (await embedder.query(text)).pooled
        except Unavailable:
            await asyncio.sleep(0.05)


async def test_failing_on_loaded_callback_leaves_the_model_usable(registry: EmbedderRegistry) -> None:
    called = asyncio.Event()

    def fails(name: str) -> None:
        called.set()
        raise RuntimeError(name)

    registry.on_loaded = fails
    with pytest.raises(ModelMissing):
        registry.of(TINY)
    await called.wait()
    assert registry.of(TINY).fingerprint.dim == 32
    loading = registry._models["tiny"]._attempts
    assert loading
    await loading


async def test_starting_twice_loads_general_once(registry: EmbedderRegistry) -> None:
    waiting = Waiting(registry)
    await registry.start()
    await registry.start()
    await waiting.until("general")
    assert registry.of(GENERAL_MODE).fingerprint.dim == 8
    assert len(pids(registry)) == 1


@pytest.mark.parametrize("loaded", [False, True])
async def test_closing_leaves_no_process(tmp_path: Path, loaded: bool) -> None:
    registry = registry_in(tmp_path, tmp_path)
    if loaded:
        await ready(registry, TINY)
    else:
        with pytest.raises(ModelMissing):
            registry.of(TINY)
        await asyncio.sleep(0)
    running = pids(registry)
    assert len(running) == 2
    await registry.close()
    await until_ended(running)


@pytest.mark.parametrize(
    ("pauses", "expected"), [(LoadBackoff(), [30, 60, 120, 240, 480, 600, 600]), (LoadBackoff(700, 600), [600, 600])]
)
def test_load_backoff_doubles_up_to_the_maximum(pauses: Iterable[float], expected: list[Any]) -> None:
    assert list(islice(pauses, len(expected))) == expected


def test_configured_general_is_refused_before_a_process_starts(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="EMBEDDERS may not hold 'general'"):
        EmbedderRegistry.open(
            tmp_path, tmp_path / "run", {"general": ConfiguredEmbedder(path=tmp_path, dim=384)}, "int8"
        )
    assert list(tmp_path.iterdir()) == []
