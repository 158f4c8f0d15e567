"""The export of MiniLM: an independent computation, the published example, kills and concurrency."""

import json
import math
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
from tokenizers import Tokenizer

from streams.adapters.embedding.inference.fastembed_model import FastembedModel
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.embedding.inference.token_vectors import TokenProjection
from streams.adapters.export.model_export import export_model, minilm_folder, parse_safetensors, read_weights
from streams.adapters.exported_models import Precision, is_complete, write_sizes
from tests.builders.exported_models import exported_minilm

Array = NDArray[np.float32]

MINILM = "all-MiniLM-L6-v2"

TEXTS = (
    "That is a happy person",
    "Ana said: the deploy target is fly.io now, not Heroku; see the runbook (v2) for naïve rollbacks!",
    "Wir treffen uns morgen um 9:30 Uhr.",
    "",
)

PUBLISHED = {"That is a happy dog": 0.695, "That is a very happy person": 0.943, "Today is a sunny day": 0.257}
"""Cosines with "That is a happy person": the example of the model's page on the Hugging Face hub."""


def load(precision: Precision, temporary: pytest.TempPathFactory) -> FastembedModel:
    return FastembedModel.load(LocalModel("general", exported_minilm(precision, temporary), 384, precision))


@pytest.fixture(scope="module")
def fp32(tmp_path_factory: pytest.TempPathFactory) -> FastembedModel:
    return load("fp32", tmp_path_factory)


@pytest.fixture(scope="module")
def int8(tmp_path_factory: pytest.TempPathFactory) -> FastembedModel:
    return load("int8", tmp_path_factory)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class PlainBert:
    """The published encoder in NumPy, from the paper's formulas and the tensors' names; one text at a time."""

    def __init__(self) -> None:
        self.weights = read_weights(minilm_folder())

    def states(self, ids: list[int]) -> Array:
        tables = (f"embeddings.{name}_embeddings.weight" for name in ("word", "position", "token_type"))
        word, position, segment = (self.weights[table] for table in tables)
        states = self.norm(word[ids] + position[: len(ids)] + segment[0], "embeddings.LayerNorm")
        for number in range(6):
            states = self.layer(states, f"encoder.layer.{number}")
        return states

    def layer(self, states: Array, name: str) -> Array:
        attended = self.linear(self.attention(states, f"{name}.attention.self"), f"{name}.attention.output.dense")
        states = self.norm(states + attended, f"{name}.attention.output.LayerNorm")
        wide = gelu(self.linear(states, f"{name}.intermediate.dense"))
        return self.norm(states + self.linear(wide, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def attention(self, states: Array, name: str) -> Array:
        query, key, value = (self.linear(states, f"{name}.{part}") for part in ("query", "key", "value"))
        heads = [slice(start, start + 32) for start in range(0, 384, 32)]
        shares = [softmax(query[:, head] @ key[:, head].T / math.sqrt(32)) for head in heads]
        return np.concatenate([share @ value[:, head] for share, head in zip(shares, heads, strict=True)], axis=1)

    def linear(self, states: Array, name: str) -> Array:
        product: Array = states @ self.weights[f"{name}.weight"].T
        return product + self.weights[f"{name}.bias"]

    def norm(self, states: Array, name: str) -> Array:
        centred = states - states.mean(axis=1, keepdims=True)
        scaled: Array = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12)
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def gelu(values: Array) -> Array:
    doubled: Array = values * (1 + np.vectorize(math.erf)(values / math.sqrt(2))).astype(np.float32)
    return doubled * np.float32(0.5)


def softmax(scores: Array) -> Array:
    powers: Array = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Array = powers / powers.sum(axis=1, keepdims=True)
    return shares


def plain_tokens(text: str) -> list[int]:
    tokenizer = Tokenizer.from_file(str(minilm_folder() / "tokenizer.json"))
    tokenizer.no_padding()
    return list(tokenizer.encode(text).ids)


@pytest.mark.parametrize("text", TEXTS)
def test_fp32_matches_an_independent_computation(fp32: FastembedModel, text: str) -> None:
    states = PlainBert().states(plain_tokens(text))
    expected = states.mean(axis=0)
    encoded = fp32.passage(text)
    assert np.abs(encoded.pooled - expected / np.linalg.norm(expected)).max() < 1e-5
    projected = TokenProjection.plain(384).of_query(states[1:-1])
    assert np.allclose(fp32.query(text).tokens, projected, atol=1e-4)


def test_fp32_matches_the_published_similarities(fp32: FastembedModel) -> None:
    happy = fp32.query("That is a happy person").pooled
    found = {text: float(happy @ fp32.passage(text).pooled) for text in PUBLISHED}
    assert found == pytest.approx(PUBLISHED, abs=0.01)


@pytest.mark.parametrize("text", TEXTS)
def test_int8_stays_near_fp32(fp32: FastembedModel, int8: FastembedModel, text: str) -> None:
    assert float(fp32.passage(text).pooled @ int8.passage(text).pooled) > 0.97


def test_int8_is_a_quarter_as_large_and_another_vector_space(
    fp32: FastembedModel, int8: FastembedModel, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sizes = {p: (exported_minilm(p, tmp_path_factory) / "model.onnx").stat().st_size for p in ("int8", "fp32")}
    assert sizes["int8"] < 0.3 * sizes["fp32"]
    assert int8.fingerprint.digest != fp32.fingerprint.digest


def test_a_batch_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    session = onnxruntime.InferenceSession(exported_minilm("fp32", tmp_path_factory) / "model.onnx")
    text = plain_tokens("a short text")
    with pytest.raises(InvalidArgument, match="input_ids for the following indices"):
        session.run(None, {"input_ids": np.array([text, text])})


def test_int8_runs_as_the_fast_kernels(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each product is one node with its quantisation; the runtime's fused residual norm is a slow one."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath, options.log_severity_level = str(tmp_path / "run.onnx"), 3
    onnxruntime.InferenceSession(exported_minilm("int8", tmp_path_factory) / "model.onnx", options)
    operators = Counter(node.op_type for node in onnx.load(tmp_path / "run.onnx").graph.node)
    assert operators["DynamicQuantizeMatMul"] == 6 * 4
    assert operators["MultiHeadAttention"] == 6
    assert operators["SkipLayerNormalization"] == 0


def test_texts_are_truncated_at_the_published_limit(int8: FastembedModel) -> None:
    assert int8.fingerprint.max_tokens == 256
    assert len(int8.passage("word " * 1000).tokens) == 254


def test_a_complete_export_is_left_as_it_is(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = exported_minilm("int8", tmp_path_factory)
    before = (folder / "model.onnx").stat().st_mtime_ns
    lines: list[str] = []
    assert export_model(MINILM, folder, "int8", lines.append) == folder
    assert (folder / "model.onnx").stat().st_mtime_ns == before
    assert lines == []


def test_killed_export_is_repeated_with_the_same_bytes(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    target = tmp_path / "model"
    kill_at(target, "quantising it to int8")
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [".model.partial"]
    export_model(MINILM, target, "int8", lambda _: None)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["model"]
    assert contents(target) == contents(exported_minilm("int8", tmp_path_factory))


def kill_at(target: Path, line: str) -> None:
    """Run the exporter, and kill it when it prints `line`."""
    root = Path(__file__).resolve().parents[4]
    command = [sys.executable, "-m", "streams.adapters.export", MINILM, str(target), "int8"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        assert any(json.loads(printed)["event"] == line for printed in process.stdout)
        process.kill()


def test_concurrent_exports_run_once(tmp_path: Path) -> None:
    lines: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        exports = [pool.submit(export_model, MINILM, tmp_path / "model", "fp32", lines.append) for _ in range(2)]
    assert [done.result() for done in exports] == [tmp_path / "model"] * 2
    assert lines.count("exporting all-MiniLM-L6-v2 to ONNX") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [".model.lock", "model"]
    onnx.checker.check_model(str(tmp_path / "model" / "model.onnx"))


def test_incomplete_export_is_replaced(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    complete = exported_minilm("fp32", tmp_path_factory)
    assert is_complete(MINILM, complete, "fp32")
    assert not is_complete(MINILM, complete, "int8")
    target = tmp_path / "model"
    target.mkdir()
    (target / "export.json").write_bytes((complete / "export.json").read_bytes())
    assert not is_complete(MINILM, target, "fp32")
    export_model(MINILM, target, "fp32", lambda _: None)
    assert contents(target) == contents(complete)


def test_truncated_model_is_exported_again(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    complete, target = exported_minilm("fp32", tmp_path_factory), tmp_path / "model"
    shutil.copytree(complete, target)
    write_sizes(target)
    assert is_complete(MINILM, target, "fp32")
    with (target / "model.onnx").open("r+b") as model:
        model.truncate(1000)
    assert not is_complete(MINILM, target, "fp32")
    export_model(MINILM, target, "fp32", lambda _: None)
    assert contents(target) == contents(complete)


def test_weights_with_another_hash_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"something else")
    with pytest.raises(ValueError, match="sha256"):
        read_weights(tmp_path)


def test_a_safetensors_file_gives_its_float_tensors() -> None:
    header = json.dumps(
        {
            "__metadata__": {"format": "pt"},
            "second": {"dtype": "F32", "shape": [2, 1], "data_offsets": [8, 16]},
            "numbers": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]},
        }
    ).encode()
    data = np.array([7], "<i8").tobytes() + np.array([1.5, -2], "<f4").tobytes()
    tensors = parse_safetensors(len(header).to_bytes(8, "little") + header + data)
    assert {name: tensor.tolist() for name, tensor in tensors.items()} == {"second": [[1.5], [-2.0]]}
