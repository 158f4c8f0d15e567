"""Tiny embedding models of any dimension, in the files and format of the real ones.

Enters: a folder, a dimension, the words that are whole tokens. Leaves: files for fastembed. Guaranteed: the same
arguments give the same bytes, and texts that share words have similar vectors, whatever the pooling.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

SPECIAL_TOKENS = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
"""Their ids are 0 to 3; only the unknown token represents text."""

CLS_ID = 1
UNKNOWN_ID = 3

PAIR_DIM = 32
"""Dimension of the token table in a tiny cross-encoder."""

LETTER_WEIGHT = 0.3
"""Length of a letter's vector, where a word's is 1: known words dominate, unknown ones still count."""


def write_tiny_model(
    folder: Path, dim: int, *, words: Iterable[str] = (), seed: int = 0, max_tokens: int = 128
) -> Path:
    """Write a model into `folder` and return it. Words must be lower case; unknown ones are split into letters."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = _vocabulary(words)
    onnx.save(_model(_token_table(vocabulary, dim, seed)), folder / "model.onnx")
    _tokenizer(vocabulary).save(str(folder / "tokenizer.json"))
    settings = {
        "config.json": {"pad_token_id": 0},
        "tokenizer_config.json": {"model_max_length": max_tokens, "pad_token": SPECIAL_TOKENS["pad_token"]},
        "special_tokens_map.json": SPECIAL_TOKENS,
    }
    for name, content in settings.items():
        (folder / name).write_text(json.dumps(content))
    return folder


def write_tiny_cross_encoder(folder: Path, *, words: Iterable[str] = (), max_tokens: int = 64) -> Path:
    """Write a cross-encoder: its number for a pair is the product of the means of both texts, ten-fold."""
    write_tiny_model(folder, PAIR_DIM, words=words, max_tokens=max_tokens)
    onnx.save(_pair_model(_token_table(_vocabulary(words), PAIR_DIM, 0)), folder / "model.onnx")
    return folder


def _vocabulary(words: Iterable[str]) -> list[str]:
    letters = [chr(code) for code in range(ord("!"), ord("~") + 1)]
    whole = sorted({word for word in words if len(word) > 1})
    return [*SPECIAL_TOKENS.values(), *letters, *(f"##{letter}" for letter in letters), *whole]


def _tokenizer(vocabulary: list[str]) -> Tokenizer:
    ids = {token: number for number, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(WordPiece(ids, unk_token=SPECIAL_TOKENS["unk_token"]))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    around = [SPECIAL_TOKENS["cls_token"], SPECIAL_TOKENS["sep_token"]]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{around[0]} $A {around[1]}",
        pair=f"{around[0]} $A {around[1]} $B:1 {around[1]}:1",
        special_tokens=[(token, ids[token]) for token in around],
    )
    return tokenizer


def _token_table(vocabulary: list[str], dim: int, seed: int) -> NDArray[np.float32]:
    """Return a direction for each token that depends on the token alone, so that models with different words agree."""
    return np.stack([_direction(token, dim, seed) * _weight(token) for token in vocabulary])


def _direction(token: str, dim: int, seed: int) -> NDArray[np.float32]:
    digest = hashlib.sha256(f"{seed} {token.removeprefix('##')}".encode()).digest()
    drawn = np.random.default_rng(list(digest)).standard_normal(dim)
    return (drawn / np.linalg.norm(drawn)).astype(np.float32)


def _weight(token: str) -> np.float32:
    return np.float32(LETTER_WEIGHT if len(token.removeprefix("##")) == 1 else 1.0)


def _model(table: NDArray[np.float32]) -> ModelProto:
    """Text tokens keep their vectors; special ones get the text's mean, so that both poolings return it.

    A small multiple of the CLS vector is added to the mean, so that an empty text has a direction.
    """
    constants = {
        "table": table,
        "empty": table[CLS_ID] * np.float32(0.01),
        "last_special": np.array(UNKNOWN_ID - 1, np.int64),
        "tokens_axis": np.array([1], np.int64),
        "last_axis": np.array([-1], np.int64),
        "one": np.float32(1),
    }
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["own"]),
        helper.make_node("Greater", ["input_ids", "last_special"], ["is_text"]),
        helper.make_node("Unsqueeze", ["is_text", "last_axis"], ["choice"]),
        helper.make_node("Cast", ["choice"], ["counted"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["own", "counted"], ["text"]),
        helper.make_node("ReduceSum", ["text", "tokens_axis"], ["sum"]),
        helper.make_node("ReduceSum", ["counted", "tokens_axis"], ["count"]),
        helper.make_node("Max", ["count", "one"], ["at_least_one"]),
        helper.make_node("Div", ["sum", "at_least_one"], ["text_mean"]),
        helper.make_node("Add", ["text_mean", "empty"], ["mean"]),
        helper.make_node("Where", ["choice", "own", "mean"], ["last_hidden_state"]),
    ]
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "tokens"])
    states = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["texts", "tokens", table.shape[1]])
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "tiny", [ids], [states], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _pair_model(table: NDArray[np.float32]) -> ModelProto:
    """Means of the text tokens of segment 0 and of segment 1; the output is their product, ten-fold."""
    constants = {
        "table": table,
        "last_special": np.array(UNKNOWN_ID - 1, np.int64),
        "tokens_axis": np.array([1], np.int64),
        "last_axis": np.array([-1], np.int64),
        "one": np.float32(1),
        "ten": np.float32(10),
    }
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["own"]),
        helper.make_node("Greater", ["input_ids", "last_special"], ["is_text"]),
        helper.make_node("Cast", ["is_text"], ["text"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["token_type_ids"], ["second"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["one", "second"], ["first"]),
    ]
    for part in ("first", "second"):
        nodes += [
            helper.make_node("Mul", ["text", part], [f"{part}.flat"]),
            helper.make_node("Unsqueeze", [f"{part}.flat", "last_axis"], [f"{part}.counted"]),
            helper.make_node("Mul", ["own", f"{part}.counted"], [f"{part}.rows"]),
            helper.make_node("ReduceSum", [f"{part}.rows", "tokens_axis"], [f"{part}.sum"], keepdims=0),
            helper.make_node("ReduceSum", [f"{part}.counted", "tokens_axis"], [f"{part}.count"], keepdims=0),
            helper.make_node("Max", [f"{part}.count", "one"], [f"{part}.at_least_one"]),
            helper.make_node("Div", [f"{part}.sum", f"{part}.at_least_one"], [f"{part}.mean"]),
        ]
    nodes += [
        helper.make_node("Mul", ["first.mean", "second.mean"], ["products"]),
        helper.make_node("ReduceSum", ["products", "last_axis"], ["product"]),
        helper.make_node("Mul", ["product", "ten"], ["logits"]),
    ]
    given = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])
        for name in ("input_ids", "token_type_ids")
    ]
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["texts", 1])
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "tiny pairs", given, [logits], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
