"""Models from a folder: pooling, truncation, fingerprint and errors."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from onnx import TensorProto, helper

from agents.rules.text.passages import CUTTING
from streams.adapters.embedding.catalog.presets import GENERAL_PRESET
from streams.adapters.embedding.inference.fastembed_model import FastembedModel
from streams.adapters.embedding.inference.local_model import LocalModel, companions_digest
from streams.adapters.embedding.inference.token_vectors import PLAIN_DIM, TokenProjection
from tests.builders.tiny_models import write_tiny_model

WORDS = ("the", "red", "house", "is", "old")


@pytest.fixture
def tiny(tmp_path: Path) -> LocalModel:
    return LocalModel("tiny", write_tiny_model(tmp_path / "tiny", 24, words=WORDS), 24, "fp32")


def test_a_model_of_another_dimension_is_refused_with_both_numbers(tiny: LocalModel) -> None:
    with pytest.raises(ValueError, match=r"'tiny' is declared with 32 dimensions.*\(24,\)"):
        FastembedModel.load(replace(tiny, dim=32))


def test_a_missing_folder_is_refused_with_its_name(tiny: LocalModel, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        FastembedModel.load(replace(tiny, directory=tmp_path / "nowhere"))


def test_fingerprint_describes_the_model(tiny: LocalModel) -> None:
    local = replace(tiny, pooling="cls", passage_prefix="p: ", max_tokens=9)
    fingerprint = FastembedModel.load(local).fingerprint
    content = (tiny.directory / "model.onnx").read_bytes()
    assert fingerprint.model_dump() == {
        "embedder": "tiny",
        "file_sha256": hashlib.sha256(content).hexdigest(),
        "precision": "fp32",
        "dim": 24,
        "pooling": "cls",
        "normalize": True,
        "passage_prefix": "p: ",
        "max_tokens": 9,
        "tokens": "identity-24",
        "token_dim": 24,
        "others": None,
        "files": companions_digest(local),
        "passages": CUTTING,
    }


def test_mean_pooling_is_the_mean_of_all_states_as_fastembed_computes_it(tiny: LocalModel) -> None:
    model = FastembedModel.load(tiny)
    TextEmbedding.add_custom_model(
        "mean-24",
        PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf="mean-24"),
        dim=24,
        model_file="model.onnx",
    )
    raw = TextEmbedding("mean-24", cache_dir=str(tiny.directory), specific_model_path=str(tiny.directory))
    for text in ("the red house", "", "house!", "the red house, unlike others " * 100):
        assert np.allclose(model.passage(text).pooled, next(iter(raw.embed([text]))), atol=1e-6)


def test_cls_pooling_takes_the_first_state_and_not_the_mean(tmp_path: Path) -> None:
    """The tiny models give both poolings the same direction, so here the states are the token ids."""
    folder = write_tiny_model(tmp_path / "tiny", 24, words=WORDS)
    write_token_numbers_model(folder / "model.onnx")
    by_cls = FastembedModel.load(LocalModel("numbers", folder, 1, "fp32", pooling="cls", normalize=False))
    by_mean = FastembedModel.load(LocalModel("numbers", folder, 1, "fp32", pooling="mean", normalize=False))
    assert by_cls.passage("!").pooled == pytest.approx([1])
    assert by_mean.passage("!").pooled == pytest.approx([(1 + 4 + 2) / 3])


def write_token_numbers_model(file: Path) -> None:
    """A model with the token's id as its state, a vector of one number."""
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["number"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["number", "last_axis"], ["last_hidden_state"]),
    ]
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "tokens"])
    states = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["texts", "tokens", 1])
    last_axis = helper.make_tensor("last_axis", TensorProto.INT64, [1], [-1])
    graph = helper.make_graph(nodes, "numbers", [ids], [states], [last_axis])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)


def test_without_normalising_the_vector_keeps_its_length(tiny: LocalModel) -> None:
    unit_vector = FastembedModel.load(tiny).passage("the red house").pooled
    raw = FastembedModel.load(replace(tiny, normalize=False)).passage("the red house").pooled
    assert np.linalg.norm(raw) < 0.99
    assert np.allclose(raw / np.linalg.norm(raw), unit_vector, atol=1e-6)


def test_token_limit_can_only_lower_the_folders_limit(tiny: LocalModel) -> None:
    long_text = "the red house is old " * 100
    assert len(FastembedModel.load(replace(tiny, max_tokens=10)).query(long_text).tokens) == 8
    assert len(FastembedModel.load(replace(tiny, max_tokens=9999)).query(long_text).tokens) == 126


def test_loading_the_same_model_twice_is_no_error(tiny: LocalModel) -> None:
    assert FastembedModel.load(tiny).fingerprint == FastembedModel.load(tiny).fingerprint


def test_model_that_pools_by_itself_has_no_token_vectors(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "tiny", 24, words=WORDS)
    write_pooled_model(folder / "model.onnx")
    model = FastembedModel.load(LocalModel("pooled", folder, 1, "fp32", normalize=False))
    passage, query = model.passage("the red house"), model.query("the red house")
    for encoded in (passage, query):
        assert encoded.pooled == pytest.approx([5])
        assert encoded.tokens.shape == (0, 0)
    assert query.spans is not None
    assert query.spans.shape == (0, 2)
    assert model.fingerprint.tokens is None
    assert model.fingerprint.token_dim == 0


def test_model_without_learned_projection_uses_the_plain_one(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "wide", 200, words=WORDS)
    model = FastembedModel.load(LocalModel("wide", folder, 200, "fp32"))
    plain = TokenProjection.plain(200)
    assert model.fingerprint.tokens == plain.name
    assert model.fingerprint.token_dim == PLAIN_DIM
    assert model.passage("the red house").tokens.shape == (2, PLAIN_DIM)


def test_model_with_learned_projection_uses_it(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "like", 384, words=WORDS)
    like = LocalModel("like", folder, 384, "fp32", learned=GENERAL_PRESET.learned)
    model, arrays = FastembedModel.load(like), like.learned_arrays()
    assert arrays is not None
    learned = TokenProjection.of(arrays)
    assert model.fingerprint.tokens == learned.name
    assert model.fingerprint.token_dim == learned.dim
    assert model.query("the red house").tokens.shape == (3, learned.dim)


def write_pooled_model(file: Path) -> None:
    """A model with one vector for a text: its number of tokens."""
    nodes = [
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["mask", "tokens_axis"], ["sentence_embedding"], keepdims=1),
    ]
    mask = helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["texts", "tokens"])
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "tokens"])
    vector = helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["texts", 1])
    tokens_axis = helper.make_tensor("tokens_axis", TensorProto.INT64, [1], [1])
    graph = helper.make_graph(nodes, "pooled", [ids, mask], [vector], [tokens_axis])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)


def test_tiny_models_are_deterministic(tmp_path: Path) -> None:
    names = ("first", "second", "other")
    folders = [write_tiny_model(tmp_path / name, 24, words=WORDS, seed=name == "other") for name in names]
    first, second, other = ({file.name: file.read_bytes() for file in folder.iterdir()} for folder in folders)
    assert first == second
    assert first["model.onnx"] != other["model.onnx"]
