"""The search for a model's files, and the errors without them."""

from pathlib import Path

import pytest

from streams.adapters.embedding.inference.fastembed_model import FastembedModel
from streams.adapters.embedding.inference.local_model import LocalModel, ensure_model_folder, missing_files
from tests.builders.tiny_models import write_tiny_model

HUB = "some/where"


def local(folder: Path, **changes: str) -> LocalModel:
    return LocalModel("tiny", folder, 8, "fp32", **changes)  # type: ignore[arg-type]


def downloaded_before(models: Path) -> Path:
    """A model as Hugging Face's client caches it."""
    kept = models / "models--some--where"
    (kept / "refs").mkdir(parents=True)
    (kept / "refs" / "main").write_text("abc")
    return write_tiny_model(kept / "snapshots" / "abc", 8, words=("red",))


def test_complete_folder_is_used_before_a_download(tmp_path: Path) -> None:
    downloaded_before(tmp_path)
    folder = write_tiny_model(tmp_path / "tiny", 8)
    assert ensure_model_folder(local(folder), HUB) == folder


def test_download_of_an_earlier_release_is_used(tmp_path: Path) -> None:
    kept = downloaded_before(tmp_path)
    folder = ensure_model_folder(local(tmp_path / "tiny"), HUB)
    assert folder.resolve() == kept.resolve()
    found = LocalModel("tiny", folder, 8, "fp32")
    assert FastembedModel.load(found).passage("red").pooled.shape == (8,)


def test_folder_without_the_tokenizer_is_incomplete(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "tiny", 8)
    (folder / "tokenizer.json").unlink()
    assert missing_files(local(folder)) == ["tokenizer.json"]
    with pytest.raises(FileNotFoundError, match=rf"^tokenizer.json not found: put the model's files into {folder}"):
        ensure_model_folder(local(folder), None)


def test_model_file_may_be_in_a_subfolder(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "tiny", 8)
    assert missing_files(local(folder, model_file="onnx/model.onnx")) == ["onnx/model.onnx"]
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model.onnx")
    assert ensure_model_folder(local(folder, model_file="onnx/model.onnx"), None) == folder


def test_files_of_a_fetch_are_used(tmp_path: Path) -> None:
    fetched = write_tiny_model(tmp_path / "fetched" / "some--where", 8)
    assert ensure_model_folder(local(tmp_path / "tiny"), HUB) == fetched
