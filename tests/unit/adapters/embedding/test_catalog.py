"""The catalog: presets as published, and names that mean one embedder."""

from dataclasses import replace
from pathlib import Path

import pytest

from schemas.state.modes import ConfiguredEmbedder
from streams.adapters.embedding.catalog.presets import PRESETS, build_catalog
from streams.adapters.exported_models import ExportedModel

MODELS = Path("models")
BGE = "Represent this sentence for searching relevant passages: "

PUBLISHED = {
    "general": ("sentence-transformers/all-MiniLM-L6-v2", 384, "mean", 256, "model.onnx", "", ""),
    "multilingual-small": ("intfloat/multilingual-e5-small", 384, "mean", 512, "model.onnx", "query: ", "passage: "),
    "code": ("jinaai/jina-embeddings-v2-base-code", 768, "mean", 8192, "onnx/model.onnx", "", ""),
    "journal": ("BAAI/bge-base-en-v1.5", 768, "cls", 512, "model_optimized.onnx", BGE, ""),
    "research": ("BAAI/bge-large-en-v1.5", 1024, "cls", 512, "model.onnx", BGE, ""),
    "multilingual": ("intfloat/multilingual-e5-base", 768, "mean", 512, "onnx/model.onnx", "query: ", "passage: "),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_preset_is_its_model_as_published(name: str) -> None:
    model_id, dim, pooling, max_tokens, file, query_prefix, passage_prefix = PUBLISHED[name]
    entries = build_catalog(MODELS, {}, "int8")
    entry = entries[name]
    assert entries[model_id] is entries[model_id.split("/")[1]] is entry
    local = entry.local
    assert local.name == model_id.split("/")[1]
    assert local.dim == dim
    assert local.pooling == pooling
    assert local.max_tokens == max_tokens
    assert local.model_file == file
    assert local.normalize is True
    assert local.query_prefix == query_prefix
    assert local.passage_prefix == passage_prefix


def test_presets_are_complete() -> None:
    assert {preset.name for preset in PRESETS} == set(PUBLISHED)
    assert {entry.name for entry in build_catalog(MODELS, {}, "int8").values()} == set(PUBLISHED)


@pytest.mark.parametrize("precision", ["int8", "fp32"])
def test_general_is_exported_in_its_precision_and_never_downloaded(precision: str) -> None:
    entry = build_catalog(MODELS, {}, "int8" if precision == "int8" else "fp32")["general"]
    assert entry.export == precision
    assert entry.local.precision == precision
    assert entry.hub is None
    assert entry.local.directory == MODELS / f"all-MiniLM-L6-v2-{precision}"


@pytest.mark.parametrize("precision", ["int8", "fp32"])
def test_multilingual_small_is_exported_in_int8_and_never_downloaded(precision: str) -> None:
    entry = build_catalog(MODELS, {}, "int8" if precision == "int8" else "fp32")["multilingual-small"]
    assert entry.export == "int8"
    assert entry.local.precision == "int8"
    assert entry.hub is None
    assert entry.local.directory == MODELS / "multilingual-e5-small-int8"


def test_general_uses_the_multilingual_model_if_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExportedModel, "is_installed", lambda _: True)
    entries = build_catalog(MODELS, {}, "int8")
    assert entries["general"].multilingual is entries["multilingual-small"]
    mine = {"multilingual-small": ConfiguredEmbedder(path=Path("/there"), dim=7)}
    assert build_catalog(MODELS, mine, "int8")["general"].multilingual is None
    monkeypatch.setattr(ExportedModel, "is_installed", lambda _: False)
    assert build_catalog(MODELS, {}, "int8")["general"].multilingual is None


def test_learned_file_changes_the_identity() -> None:
    entry = build_catalog(MODELS, {}, "int8")["multilingual-small"]
    other = replace(entry, local=replace(entry.local, learned="all-MiniLM-L6-v2.bin"))
    assert len({entry.identity, other.identity, replace(entry, local=replace(entry.local, learned="")).identity}) == 3


def test_other_presets_have_a_folder_and_a_download() -> None:
    entries = build_catalog(MODELS, {}, "int8")
    for name in set(PUBLISHED) - {"general", "multilingual-small"}:
        assert entries[name].local.directory == MODELS / name
        assert entries[name].hub
        assert entries[name].export is None


def test_configured_embedder_keeps_its_settings() -> None:
    written = ConfiguredEmbedder(
        path=Path("/there"), dim=7, pooling="cls", normalize=False, query_prefix="q", passage_prefix="p",
        max_tokens=9, model_file="small.onnx",
    )  # fmt: skip
    entry = build_catalog(MODELS, {"mine": written}, "int8")["mine"]
    assert entry.name == "mine"
    assert entry.hub is None
    assert entry.export is None
    local = entry.local
    assert local.name == "mine"
    assert local.directory == Path("/there")
    assert local.dim == 7
    assert local.pooling == "cls"
    assert local.normalize is False
    assert local.max_tokens == 9
    assert local.model_file == "small.onnx"
    assert local.query_prefix == "q"
    assert local.passage_prefix == "p"
    described = entry.description
    assert described.name == "mine"
    assert described.dim == 7
    assert described.max_tokens == 9
    assert described.query_prefix == "q"
    assert described.passage_prefix == "p"


def test_configured_embedder_replaces_a_preset() -> None:
    entries = build_catalog(MODELS, {"journal": ConfiguredEmbedder(path=Path("/there"), dim=7)}, "int8")
    assert entries["journal"].local.dim == 7
    assert "BAAI/bge-base-en-v1.5" not in entries
    assert "bge-base-en-v1.5" not in entries
    assert entries["research"].local.dim == 1024


def test_configured_embedder_may_use_a_preset_models_name() -> None:
    entries = build_catalog(MODELS, {"bge-base-en-v1.5": ConfiguredEmbedder(path=Path("/there"), dim=7)}, "int8")
    assert entries["bge-base-en-v1.5"].local.dim == 7
    assert entries["journal"].local.dim == 768


@pytest.mark.parametrize("name", ["general", "all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_general_cannot_be_replaced(name: str) -> None:
    with pytest.raises(ValueError, match=f"EMBEDDERS may not hold '{name}'.*another name"):
        build_catalog(MODELS, {name: ConfiguredEmbedder(path=Path("/there"), dim=384)}, "int8")


def test_presets_that_are_not_allowed_are_unknown(tmp_path: Path) -> None:
    names = build_catalog(tmp_path, {}, "int8", allowed=("journal",))
    assert {"general", "multilingual-small", "journal"} <= names.keys()
    assert not {"research", "code", "multilingual", "BAAI/bge-large-en-v1.5"} & names.keys()
