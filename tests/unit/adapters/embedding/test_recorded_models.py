"""A model's space is the same for the same files, and another one where its tokenizer or its weights were replaced."""

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from schemas.internal.service import ModelRecord
from schemas.state.modes import GENERAL, ConfiguredEmbedder, Fingerprint, Mode
from streams.adapters.embedding.catalog.model_loading import LoadBackoff, RecordedModels
from streams.adapters.embedding.catalog.presets import build_catalog
from streams.adapters.embedding.catalog.registry import EmbedderRegistry
from streams.adapters.embedding.inference.fastembed_model import FastembedModel
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.deployment_log import readable
from tests.builders.tiny_models import write_tiny_model
from tests.fakes.deployment_log import FakeDeploymentLog
from tests.harnesses.embedder_registry import general_in
from tests.unit.adapters.embedding.test_fingerprint import PLAIN

FIRST, OTHER = (PLAIN.model_copy(update={"files": files}) for files in ("a" * 12, "b" * 12))


def record(loaded: Fingerprint) -> ModelRecord:
    return ModelRecord(embedder=loaded.embedder, space=PLAIN.digest, files=loaded.files or "")


def model_log() -> FakeDeploymentLog:
    return FakeDeploymentLog(record(FIRST).key)


def written(log: FakeDeploymentLog) -> list[ModelRecord]:
    return readable(log.written, ModelRecord)


async def test_first_files_of_a_model_are_recorded_and_have_the_space_that_they_had_without_a_record() -> None:
    log = model_log()
    assert await RecordedModels(log).agreed(FIRST) == PLAIN
    assert written(log) == [record(FIRST)]
    assert await RecordedModels(log).agreed(FIRST) == PLAIN
    assert len(log.written) == 1


async def test_other_files_are_another_space_for_every_worker_and_the_former_ones_have_theirs_again() -> None:
    log = model_log()
    await RecordedModels(log).agreed(FIRST)
    with capture_logs() as logs:
        changed = [await RecordedModels(log).agreed(OTHER) for _ in range(2)]
    assert [each.digest for each in changed] == [OTHER.digest] * 2
    assert OTHER.digest != PLAIN.digest
    assert "change-model" in logs[0]["consequence"]
    assert await RecordedModels(log).agreed(FIRST) == PLAIN


async def test_of_two_workers_that_load_a_model_first_the_first_record_counts_and_stays_behind_the_other() -> None:
    log = model_log()

    def write_first() -> None:
        log.before_write = lambda: None
        log.put(record(FIRST).key, record(FIRST))

    log.before_write = write_first
    assert (await RecordedModels(log).agreed(OTHER)).files == OTHER.files
    assert written(log) == [record(FIRST), record(OTHER), record(FIRST)]


async def test_another_model_file_under_the_same_name_is_told() -> None:
    log = model_log()
    await RecordedModels(log).agreed(FIRST)
    replaced = FIRST.model_copy(update={"file_sha256": "another"})
    with capture_logs() as logs:
        assert (await RecordedModels(log).agreed(replaced)).digest == replaced.model_copy(update={"files": None}).digest
    assert [log["embedder"] for log in logs if log["log_level"] == "warning"] == ["e"]


async def test_model_without_a_digest_of_its_files_is_as_before() -> None:
    log = model_log()
    assert await RecordedModels(log).agreed(PLAIN) == PLAIN
    assert written(log) == []


@pytest.mark.parametrize("replaced", ["tokenizer.json", "special_tokens_map.json", "model.onnx_data"])
def test_each_file_that_decides_vectors_has_its_part_in_the_digest(tmp_path: Path, replaced: str) -> None:
    folder = write_tiny_model(tmp_path / "tiny", 8, words=("red",))
    (folder / "model.onnx_data").write_bytes(b"weights")
    others = ["README.md", "model.safetensors", "modelcard.md", "model_fp16.onnx_data", "model.onnx.bak"]
    model = LocalModel("tiny", folder, 8, "as found")
    before = FastembedModel.load(model).fingerprint
    for name in others:
        (folder / name).write_text("not a part")
    assert FastembedModel.load(model).fingerprint == before
    with (folder / replaced).open("ab") as file:
        file.write(b"\n")
    after = FastembedModel.load(model).fingerprint
    assert after.file_sha256 == before.file_sha256
    assert after.digest != before.digest


async def test_replaced_tokenizer_gives_a_mode_another_space_at_the_next_start(shared: Path, tmp_path: Path) -> None:
    log, folder = model_log(), tmp_path / "tiny"
    write_tiny_model(folder, 32, words=("red",))
    before = await fingerprint_of(shared, tmp_path, log)
    assert before.files is None
    assert await fingerprint_of(shared, tmp_path, log) == before
    # The words of the other tokenizer have other numbers: the same file makes other vectors.
    other = write_tiny_model(tmp_path / "other", 32, words=("house",))
    (other / "tokenizer.json").rename(folder / "tokenizer.json")
    after = await fingerprint_of(shared, tmp_path, log)
    assert after.file_sha256 == before.file_sha256
    assert after.digest != before.digest


async def fingerprint_of(shared: Path, models: Path, log: FakeDeploymentLog) -> Fingerprint:
    """Return the fingerprint of the embedder `tiny` after a start of the registry."""
    entries = build_catalog(models, {"tiny": ConfiguredEmbedder(path=models / "tiny", dim=32)}, "int8")
    entries |= {GENERAL: general_in(shared)}
    registry = EmbedderRegistry(entries, shared / "run", threads=1, backoff=LoadBackoff(0.01, 0.02))
    registry.recorded, loaded = RecordedModels(log), asyncio.Event()
    registry.on_loaded = lambda name: loaded.set() if name == "tiny" else None
    mode = Mode(name="any", embedder="tiny", embedding_dim=32)
    try:
        registry._begin(entries["tiny"])
        await loaded.wait()
        return registry.of(mode).fingerprint
    finally:
        await registry.close()
