"""The trained classifier of interaction modes: a linear model in numpy. Pure.

Enters: the model file's bytes; then a text and its vector of the general embedder. Leaves: calibrated probabilities.
Guaranteed: bounded time for a text of any length; loading executes no code. The temperature that calibrates is in the
weights.

The file is `MODESTREAM INTERACTION 2`, a line of JSON (the modes, a digest of the examples, the cue table, each array's
name, type and shape), then the arrays one after another, little-endian, in row-major order.
"""

import json
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from agents.rules.interaction.features import (
    HASH_BUCKETS,
    CueTable,
    dense_features,
    fold_for_hashing,
    hash_ngrams,
    head_and_tail,
)
from schemas.models.vectors import Vector
from schemas.state.interaction import INTERACTION_MODES

MODEL_FILE_MAGIC = b"MODESTREAM INTERACTION 2\n"
"""The first bytes of the file; the number counts up with the format."""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class InteractionClassifier:
    """A loaded model. `about` is the file's JSON line."""

    about: dict[str, Any]
    cues: CueTable
    vector_weights: FloatArray
    value_weights: FloatArray
    piece_weights: FloatArray
    bias: FloatArray

    @classmethod
    def loads(cls, data: bytes) -> Self:
        """Parse a model file. Raises ValueError for another format, other modes or other features."""
        if not data.startswith(MODEL_FILE_MAGIC):
            raise ValueError("not a model of interaction modes, or one of another format version")
        end = data.index(b"\n", len(MODEL_FILE_MAGIC))
        about = json.loads(data[len(MODEL_FILE_MAGIC) : end])
        if tuple(about["modes"]) != INTERACTION_MODES or about["buckets"] != HASH_BUCKETS:
            raise ValueError("the model was trained for other modes or features; train it again")
        arrays = _arrays(about["arrays"], data[end + 1 :])
        scaled = arrays.pop("piece_weights") * arrays.pop("piece_scale")
        return cls(about, CueTable.loads(about["cues"]), piece_weights=scaled, **arrays)

    def probabilities(self, text: str, vector: Vector) -> FloatArray:
        """Return the probability of each mode in the order of `INTERACTION_MODES`; shape (5,), summing to 1.

        `vector` is the text's by the general embedder, shape (384,). Raises ValueError for another shape.
        """
        part = head_and_tail(text)
        folded = fold_for_hashing(part)
        logits = vector @ self.vector_weights + dense_features(part, folded, len(text), self.cues) @ self.value_weights
        ngrams = hash_ngrams(folded)
        words = int(np.searchsorted(ngrams, HASH_BUCKETS))
        for indices in (ngrams[:words], ngrams[words:]):
            if len(indices):
                logits += self.piece_weights[indices].sum(axis=0) / np.sqrt(len(indices))
        return softmax(logits + self.bias)


def softmax(logits: FloatArray) -> FloatArray:
    """Return the softmax over the last axis."""
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: FloatArray = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return shares


def _arrays(descriptions: list[dict[str, Any]], data: bytes) -> dict[str, FloatArray]:
    """Return the arrays by name, as float64. Raises ValueError for missing or surplus bytes."""
    arrays, start = {}, 0
    for one in descriptions:
        count = int(np.prod(one["shape"]))
        dtype = np.dtype(one["dtype"])
        array = np.frombuffer(data, dtype, count, start).reshape(one["shape"])
        arrays[one["name"]] = array.astype(np.float64)
        start += count * dtype.itemsize
    if start != len(data):
        raise ValueError("the model file has more bytes than its header describes")
    return arrays
