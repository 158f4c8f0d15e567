"""The file of multilingual-e5-small: small artificial ones are read, corrupt and unknown ones refused."""

import hashlib
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import ModelProto

from streams.adapters.export.bert_graph import bert_model
from streams.adapters.export.e5 import (
    E5File,
    e5_config,
    e5_tensors,
    e5_word_table,
    parse_e5_file,
    read_e5,
    write_tokenizer,
)
from streams.adapters.export.package_weights import FourBitTensor
from streams.adapters.exported_models import E5
from tests.builders.e5_weights import HIDDEN, LAYERS, PIECES, made_e5


@pytest.fixture(scope="module")
def e5() -> E5File:
    return parse_e5_file(made_e5())


def states(model: ModelProto, ids: list[int]) -> NDArray[np.float32]:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return np.asarray(session.run(None, {"input_ids": np.array([ids])})[0][0])


def test_a_block_of_4_bit_weights_gives_its_floats() -> None:
    pairs = [low | (15 - low) << 4 for low in range(16)]
    content = struct.pack("<e16B", 0.5, *pairs)
    expected = [(level - 8) * 0.5 for level in range(16)] + [(7 - level) * 0.5 for level in range(16)]
    assert FourBitTensor.of(content, 32).floats().tolist() == [expected]


def test_packed_levels_have_the_left_weight_in_the_low_half() -> None:
    pairs = [low | (15 - low) << 4 for low in range(16)]
    packed = FourBitTensor.of(struct.pack("<e16B", 0.5, *pairs), 32).packed_levels()
    levels = [*range(16), *range(15, -1, -1)]
    assert packed.tolist() == [[left | right << 4 for left, right in zip(levels[::2], levels[1::2], strict=True)]]


def test_pieces_scores_and_sizes_are_read(e5: E5File) -> None:
    assert e5.pieces == [piece for piece, _ in PIECES]
    assert e5.scores.tolist() == pytest.approx([score for _, score in PIECES])
    assert e5.specials == (0, 1, 2, 3)
    config = e5_config(e5)
    assert config["hidden_size"] == HIDDEN
    assert config["num_hidden_layers"] == LAYERS
    assert config["layer_norm_eps"] == 1e-12


def test_4_bit_embeddings_give_the_states_of_their_floats(e5: E5File) -> None:
    weights, words, config = e5_tensors(e5), e5_word_table(e5), e5_config(e5)
    ids = [0, 5, 8, 7, 2]
    found = states(bert_model(weights, config, words), ids)
    plain = {**weights, "embeddings.word_embeddings.weight": words.floats()}
    assert found.shape == (len(ids), HIDDEN)
    assert np.array_equal(found, states(bert_model(plain, config), ids))
    assert not np.allclose(found, states(bert_model(plain, config), ids[::-1]), atol=0.1)


def test_the_same_file_gives_the_same_bytes(e5: E5File, tmp_path: Path) -> None:
    again = parse_e5_file(made_e5())
    models = [
        bert_model(e5_tensors(file), e5_config(file), e5_word_table(file)).SerializeToString(deterministic=True)
        for file in (e5, again)
    ]
    assert models[0] == models[1]
    for name, each in (("first", e5), ("second", again)):
        (tmp_path / name).mkdir()
        write_tokenizer(each, tmp_path / name, e5_config(each), 16)
    written = [{path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("first", "second")]
    assert written[0] == written[1]
    assert sorted(written[0]) == sorted(E5.tokenizer_files)


def test_only_the_file_with_the_known_hash_is_read(tmp_path: Path) -> None:
    content = made_e5()
    file = tmp_path / "model.bin"
    file.write_bytes(content)
    assert read_e5(file, hashlib.sha256(content).hexdigest()).pieces == [piece for piece, _ in PIECES]
    with pytest.raises(ValueError, match=r"model\.bin has sha256"):
        read_e5(file)


def test_truncated_file_is_refused() -> None:
    content = made_e5()
    for length in range(0, len(content), 97):
        with pytest.raises(ValueError, match=r"short|takes .* bytes"):
            e5_tensors(parse_e5_file(content[:length]))


@pytest.mark.parametrize("changed", [b"E5S2", b"ONNX"])
def test_another_format_is_refused(changed: bytes) -> None:
    with pytest.raises(ValueError, match="not a file of multilingual-e5-small"):
        parse_e5_file(changed + made_e5()[4:])


def test_a_missing_package_is_not_installed() -> None:
    model = replace(E5, package="no_such_package")
    assert not model.is_installed()
    with pytest.raises(FileNotFoundError, match="no_such_package is not installed"):
        model.weights_path()
