"""A model on this machine's disk, described; nothing is loaded by this module."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Pooling = Literal["mean", "cls"]


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A folder with an ONNX model and its tokenizer, and what its output means.

    `max_tokens` can only lower the limit that the folder's tokenizer has. The model's first output is either token
    states, which `pooling` makes one vector of, or already one vector for a text; then there are no token vectors.
    `learned_tokens` says that the projection of token states that comes with the project was learned for this model.
    """

    name: str
    directory: Path
    dim: int
    precision: str
    pooling: Pooling = "mean"
    normalize: bool = True
    max_tokens: int | None = None
    query_prefix: str = ""
    passage_prefix: str = ""
    model_file: str = "model.onnx"
    learned_tokens: bool = False
