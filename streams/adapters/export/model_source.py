"""A model that can be exported: what differs between one and another. Nothing is loaded by this module."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MODEL = "model.onnx"
"""The name of the exported model's file."""


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where a model comes from. `write` puts it into a folder: `MODEL` in float32, and the tokenizer's files.

    `weights_sha256` is the hash of the file with its weights, `max_tokens` where the exported tokenizer cuts a text.
    """

    name: str
    weights_sha256: str
    max_tokens: int
    tokenizer_files: tuple[str, ...]
    write: Callable[[Path], None]
