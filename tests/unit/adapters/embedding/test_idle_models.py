"""Models that nothing has used for a while are unloaded, and loaded again when they are needed."""

import asyncio
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from schemas.failures import ModelMissing, Unavailable
from streams.adapters.embedding.catalog import model_loading
from streams.adapters.embedding.catalog import registry as registry_module
from streams.adapters.embedding.catalog.registry import EmbedderRegistry
from tests.builders.tiny_models import write_tiny_model
from tests.harnesses.embedder_registry import TINY, Waiting, pids, ready, until_ended, until_state


@pytest.fixture
def idle(registry: EmbedderRegistry) -> EmbedderRegistry:
    """The registry, whose models are idle at once."""
    registry._idle_s = 0.02
    return registry


async def test_idle_model_is_unloaded_without_a_fault_and_general_stays(idle: EmbedderRegistry) -> None:
    waiting = Waiting(idle)
    await idle.start()
    await waiting.until("general")
    embedder = await ready(idle, TINY)
    assert len(pids(idle)) == 2
    await until_state(idle, "tiny", "unloaded")
    assert idle.status()["tiny"] == {"state": "unloaded", "error": None}
    assert idle.status()["general"]["state"] == "ready"
    assert len(pids(idle)) == 1
    assert idle.of(TINY).fingerprint == embedder.fingerprint
    assert len(pids(idle)) == 1, "what needs no vector loads no model"


async def test_passage_of_an_unloaded_model_is_missing_until_it_is_loaded_again(idle: EmbedderRegistry) -> None:
    await idle.start()
    embedder = await ready(idle, TINY)
    before = await embedder.passage("red")
    await until_state(idle, "tiny", "unloaded")
    idle._idle_s = 1000.0
    waiting = Waiting(idle)
    with pytest.raises(ModelMissing, match="'tiny' is missing: its model is being loaded"):
        await embedder.passage("house")
    assert idle.status()["tiny"] == {"state": "loading", "error": None}
    await waiting.until("tiny")
    assert np.array_equal((await embedder.passage("red")).pooled, before.pooled)


async def test_question_waits_for_an_unloaded_model(idle: EmbedderRegistry) -> None:
    await idle.start()
    embedder = await ready(idle, TINY)
    before = await embedder.query("red")
    await until_state(idle, "tiny", "unloaded")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(model_loading, "MAX_RELOAD_WAIT_S", 0.0)
        with pytest.raises(Unavailable, match="its model is being loaded"):
            await embedder.query("red")
        patched.setattr(model_loading, "MAX_RELOAD_WAIT_S", 60.0)
        assert np.array_equal((await embedder.query("red")).pooled, before.pooled)


async def test_question_does_not_wait_for_an_unloaded_model_whose_files_are_gone(
    idle: EmbedderRegistry, tmp_path: Path
) -> None:
    await idle.start()
    embedder = await ready(idle, TINY)
    _, *loaded = pids(idle)
    await until_state(idle, "tiny", "unloaded")
    await until_ended(loaded)
    (tmp_path / "tiny" / "model.onnx").unlink()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(model_loading, "MAX_RELOAD_WAIT_S", 60.0)
        with pytest.raises(ModelMissing, match=r"model\.onnx") as first:
            await embedder.query("red")
        with pytest.raises(ModelMissing, match=r"model\.onnx") as later:
            await asyncio.wait_for(embedder.query("red"), 1.0)
    assert str(tmp_path) not in f"{first.value} {later.value}", "users read it"


async def test_another_model_in_the_place_of_an_unloaded_one_is_not_taken(
    idle: EmbedderRegistry, tmp_path: Path
) -> None:
    await idle.start()
    embedder = await ready(idle, TINY)
    _, *loaded = pids(idle)
    await until_state(idle, "tiny", "unloaded")
    await until_ended(loaded)
    write_tiny_model(tmp_path / "tiny", 32, words=("red", "house"), seed=1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(model_loading, "MAX_RELOAD_WAIT_S", 60.0)
        with pytest.raises(ModelMissing, match="its model has changed"):
            await embedder.query("red")


async def test_model_in_use_is_not_unloaded(idle: EmbedderRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "MAX_IDLE_CHECK_S", 0.01)
    idle._idle_s = 1000.0
    await idle.start()
    await until_state(idle, "general", "ready")
    before = set(pids(idle))
    embedder = await ready(idle, TINY)
    [tiny] = set(pids(idle)) - before
    os.kill(tiny, signal.SIGSTOP)
    asked = asyncio.create_task(embedder.passage("red"))
    await asyncio.sleep(0)
    idle._idle_s = 0.02
    await asyncio.sleep(0.2)
    assert idle.status()["tiny"]["state"] == "ready"
    os.kill(tiny, signal.SIGCONT)
    assert (await asked).pooled.shape == (32,)


async def test_models_stay_loaded_where_idle_ones_are_not_unloaded(registry: EmbedderRegistry) -> None:
    await registry.start()
    await ready(registry, TINY)
    await asyncio.sleep(0.2)
    assert registry.status()["tiny"]["state"] == "ready"
