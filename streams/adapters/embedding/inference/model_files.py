"""The digest of what a model's vectors depend on besides its ONNX file: the tokenizer, and weights kept in other files.

Large models keep their weights beside the graph, in files named after it (`model.onnx_data`, `model.onnx.data`).
"""

import hashlib
from pathlib import Path

from streams.adapters.embedding.inference.local_model import LocalModel

TOKENIZING_FILES = ("tokenizer.json", "special_tokens_map.json")
"""Files that decide a text's tokens. The token limit, in `tokenizer_config.json`, is in the fingerprint itself."""

WEIGHTS_SUFFIXES = ("_data", ".data")
"""What ONNX's exporters add to the model's file name for weights in files of their own; a number may follow."""

DIGITS = 12
"""Hexadecimal digits of the digest, as of a vector space."""


def companions_digest(local: LocalModel) -> str:
    """Return the digest of the names and contents of these files. Raises OSError."""
    model = local.directory / local.model_file
    tokenizing = [path for name in TOKENIZING_FILES if (path := local.directory / name).is_file()]
    beside = [path for path in sorted(model.parent.iterdir()) if _has_weights(path, model)]
    total = hashlib.sha256()
    for path in (*tokenizing, *beside):
        with path.open("rb") as file:
            total.update(f"{path.name}\n{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return total.hexdigest()[:DIGITS]


def _has_weights(path: Path, model: Path) -> bool:
    """True for a file of the model's weights; other formats and descriptions of it in the same folder are none."""
    return path.name.startswith(tuple(f"{model.name}{suffix}" for suffix in WEIGHTS_SUFFIXES)) and path.is_file()
