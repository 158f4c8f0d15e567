"""The built-in embedders, as data: modes name them by preset or by model.

Guaranteed: dimension, pooling, prefixes, token limit and file are those that each model was published with.
"""

from dataclasses import dataclass

from schemas.models.embedders import Pooling

BGE_QUERY = "Represent this sentence for searching relevant passages: "
"""The query prefix of bge's authors: https://huggingface.co/BAAI/bge-base-en-v1.5. Passages have no prefix."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A published model. `hub` is the repository that has it as ONNX; None: it is exported here.

    `learned` names the file of what was learned about its vectors; empty: there is none.
    """

    name: str
    model_id: str
    dim: int
    max_tokens: int
    pooling: Pooling
    model_file: str = "model.onnx"
    hub: str | None = None
    query_prefix: str = ""
    passage_prefix: str = ""
    learned: str = ""

    @property
    def model_name(self) -> str:
        """The model's id without the organisation."""
        return self.model_id.rsplit("/", 1)[-1]

    @property
    def names(self) -> tuple[str, str, str]:
        """The names that a mode may use: the preset's, the model's id with and without the organisation."""
        return self.name, self.model_id, self.model_name


GENERAL_PRESET = Preset(
    name="general",
    model_id="sentence-transformers/all-MiniLM-L6-v2",
    dim=384,
    max_tokens=256,
    pooling="mean",
    learned="all-MiniLM-L6-v2.bin",
)
"""Always loaded: it embeds the mode `general`, which every user has."""

MULTILINGUAL_SMALL = Preset(
    name="multilingual-small",
    model_id="intfloat/multilingual-e5-small",
    dim=384,
    max_tokens=512,
    pooling="mean",
    query_prefix="query: ",
    passage_prefix="passage: ",
    learned="multilingual-e5-small.bin",
)
"""Embeds texts that are not English in the mode `general`; loaded with the first such text."""

PRESETS = (
    GENERAL_PRESET,
    MULTILINGUAL_SMALL,
    Preset(
        name="code",
        model_id="jinaai/jina-embeddings-v2-base-code",
        dim=768,
        max_tokens=8192,
        pooling="mean",
        model_file="onnx/model.onnx",
        hub="jinaai/jina-embeddings-v2-base-code",
    ),
    Preset(
        name="journal",
        model_id="BAAI/bge-base-en-v1.5",
        dim=768,
        max_tokens=512,
        pooling="cls",
        model_file="model_optimized.onnx",
        hub="Qdrant/bge-base-en-v1.5-onnx-Q",
        query_prefix=BGE_QUERY,
    ),
    Preset(
        name="research",
        model_id="BAAI/bge-large-en-v1.5",
        dim=1024,
        max_tokens=512,
        pooling="cls",
        hub="Qdrant/bge-large-en-v1.5-onnx",
        query_prefix=BGE_QUERY,
    ),
    Preset(
        name="multilingual",
        model_id="intfloat/multilingual-e5-base",
        dim=768,
        max_tokens=512,
        pooling="mean",
        model_file="onnx/model.onnx",
        hub="intfloat/multilingual-e5-base",
        query_prefix="query: ",
        passage_prefix="passage: ",
    ),
)
"""All presets normalise to length 1. Files and repositories are those that fastembed 0.9.1 downloads, except for
multilingual-e5-base, which it does not know: there they are the model's own."""
