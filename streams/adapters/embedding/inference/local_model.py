"""A model on this machine's disk, described; the model itself is not loaded by this module."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from schemas.embedders import Pooling
from streams.adapters.embedding.inference.learned_arrays import LearnedArrays, read_learned


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A folder with an ONNX model and its tokenizer, and what its output means.

    `max_tokens` can only lower the limit that the folder's tokenizer has. The model's first output is either token
    states, which `pooling` makes one vector of, or already one vector for a text; then there are no token vectors.
    `learned` names the file beside this one that holds what was learned about this model's vectors; empty: nothing.
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
    learned: str = ""

    def learned_arrays(self) -> LearnedArrays | None:
        """What was learned about this model's vectors; None where nothing was."""
        return _learned(self.learned) if self.learned else None


@cache
def _learned(name: str) -> LearnedArrays:
    return read_learned(Path(__file__).with_name(name))
