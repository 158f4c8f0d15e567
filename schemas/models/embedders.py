"""Embedders that modes can name: the project's presets, and those of the setting `EMBEDDERS`."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

Pooling = Literal["mean", "cls"]
"""How token states are pooled into one vector: their mean, or the state of the first token."""


class EmbedderDescription(BaseModel, frozen=True):
    """What is known of an embedder before its model is loaded. `name` is the one that modes store."""

    name: str
    dim: int
    query_prefix: str = ""
    passage_prefix: str = ""


class ConfiguredEmbedder(BaseModel, frozen=True, extra="forbid"):
    """One entry of the setting `EMBEDDERS`: a folder with an ONNX model and its tokenizer."""

    path: Path
    dim: int = Field(ge=1)
    pooling: Pooling = "mean"
    normalize: bool = True
    query_prefix: str = ""
    passage_prefix: str = ""
    max_tokens: int | None = Field(default=None, ge=1)
    model_file: str = "model.onnx"
