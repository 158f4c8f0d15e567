"""The description of a model on the local disk. The model itself is not loaded here."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from schemas.models.embedders import Pooling
from streams.adapters.embedding.inference.learned_arrays import LearnedArrays, read_learned


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A folder with an ONNX model and its tokenizer, and how to read its output.

    `max_tokens` can only lower the limit of the folder's tokenizer. The model's first output is either token states,
    which are pooled to one vector, or already one vector for a text; then there are no token vectors. `learned` names
    the file of learned arrays beside this module; empty: there is none.
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
        """Return the arrays that were learned from this model's vectors; None if there are none."""
        return _learned(self.learned) if self.learned else None


@cache
def _learned(name: str) -> LearnedArrays:
    return read_learned(Path(__file__).with_name(name))
