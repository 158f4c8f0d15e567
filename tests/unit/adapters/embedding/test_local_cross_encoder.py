"""The cross-encoder's process: started by the first call, ended when idle, and only over the published file."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.failures import ModelMissing
from streams.adapters.embedding.catalog.local_cross_encoder import LocalCrossEncoder
from streams.adapters.embedding.catalog.model_loading import LoadBackoff
from streams.adapters.exported_models import CROSS_ENCODER
from tests.builders.tiny_models import write_tiny_cross_encoder, write_tiny_model
from tests.harnesses.cross_encoder import PackagedFolder, packaged

WORDS = ("lantern", "hall")


@pytest.fixture
def package(tmp_path: Path) -> PackagedFolder:
    return packaged(write_tiny_cross_encoder(tmp_path / "pairs", words=WORDS))


@pytest.fixture
async def cross_encoder(package: PackagedFolder, tmp_path: Path) -> AsyncIterator[LocalCrossEncoder]:
    made = LocalCrossEncoder(tmp_path, 1, model=package)
    yield made
    await made.close()


async def until_unloaded(cross_encoder: LocalCrossEncoder) -> None:
    async with asyncio.timeout(60):
        while not cross_encoder._loader.unloaded:
            await asyncio.sleep(0.01)


async def test_first_call_loads_the_model(cross_encoder: LocalCrossEncoder) -> None:
    assert not cross_encoder.is_loaded
    await cross_encoder.scores("lantern", ["hall"])
    assert cross_encoder.is_loaded


async def test_idle_model_is_unloaded_and_loaded_again(package: PackagedFolder, tmp_path: Path) -> None:
    cross_encoder = LocalCrossEncoder(tmp_path, 1, 0.01, model=package)
    before = await cross_encoder.scores("lantern", ["lantern hall"])
    await until_unloaded(cross_encoder)
    assert await cross_encoder.scores("lantern", ["lantern hall"]) == before
    await cross_encoder.close()


async def test_model_whose_caller_gave_up_is_unloaded_as_well(package: PackagedFolder, tmp_path: Path) -> None:
    cross_encoder = LocalCrossEncoder(tmp_path, 1, 0.01, model=package)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(cross_encoder.scores("lantern", ["hall"]), 0.01)
    await until_unloaded(cross_encoder)
    await cross_encoder.close()


async def test_calls_that_are_cancelled_leave_it_usable(cross_encoder: LocalCrossEncoder) -> None:
    await cross_encoder.scores("lantern", ["hall"])
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(cross_encoder.scores("lantern", ["hall"] * 2000), 0.01)
    assert len(await cross_encoder.scores("lantern", ["hall"])) == 1


async def test_package_that_is_not_installed_is_named(package: PackagedFolder, tmp_path: Path) -> None:
    cross_encoder = LocalCrossEncoder(tmp_path, 1, model=replace(CROSS_ENCODER, package="there_is_no_such_package"))
    with pytest.raises(ModelMissing, match="there_is_no_such_package is not installed"):
        await cross_encoder.scores("lantern", ["hall"])
    assert cross_encoder._loader.error is None, "nothing is tried"
    await cross_encoder.close()


async def test_file_that_was_not_published_is_not_used(package: PackagedFolder, tmp_path: Path) -> None:
    changed = replace(package, weights_sha256="0" * 64)
    cross_encoder = LocalCrossEncoder(tmp_path, 1, model=changed, backoff=LoadBackoff(60, 60))
    with pytest.raises(ModelMissing, match="could not be loaded") as refused:
        await cross_encoder.scores("lantern", ["hall"])
    assert str(package.folder) not in str(refused.value), "users read it"
    await cross_encoder.close()


async def test_embedder_in_its_place_is_refused(tmp_path: Path) -> None:
    embedder = packaged(write_tiny_model(tmp_path / "embedder", 8))
    cross_encoder = LocalCrossEncoder(tmp_path, 1, model=embedder, backoff=LoadBackoff(60, 60))
    with pytest.raises(ModelMissing, match="could not be loaded"):
        await cross_encoder.scores("lantern", ["hall"])
    await cross_encoder.close()
