"""The trained classifier of interaction modes: numpy over a small file. Pure.

Enters: the model's bytes; then a text and its vector of the general embedder. Leaves: calibrated probabilities.
Guaranteed: the time has a limit whatever the text's length, and no code is in the file.

The file is `MODESTREAM INTERACTION 1`, a line of JSON (the modes, a digest of the examples, the cue table, each array's
name, type and shape), then the arrays one after another, little-endian, in row-major order.
"""

import json
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from agents.rules.interaction.cues import CueTable
from agents.rules.interaction.features import HASH_BUCKETS, dense_features, fold_for_hashing, hash_ngrams, head_and_tail
from agents.rules.interaction.voting import MIN_MODE_CONFIDENCE
from schemas.interaction import INTERACTION_MODES
from schemas.vectors import Vector

MODEL_FILE_MAGIC = b"MODESTREAM INTERACTION 1\n"
"""What the file begins with; the number counts up when its form changes."""

SHARE_EPSILON = 1e-12
"""Less than any share that is divided by."""

MAX_POOL_CONFIDENCE = 0.75
"""The highest confidence that is said of an answer in the pool; the threshold is the lowest."""

RAMP = 0.02
"""Above the pool, confidences climb back to the model's own over this distance."""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class InteractionClassifier:
    """A loaded model. `about` is the line of JSON."""

    about: dict[str, Any]
    cues: CueTable
    vector_weights: FloatArray
    value_weights: FloatArray
    piece_weights: FloatArray
    bias: FloatArray

    @classmethod
    def loads(cls, data: bytes) -> Self:
        """Read the file's content. Raises ValueError for another form or other modes."""
        if not data.startswith(MODEL_FILE_MAGIC):
            raise ValueError("this is no model of interaction modes, or one of another version")
        end = data.index(b"\n", len(MODEL_FILE_MAGIC))
        about = json.loads(data[len(MODEL_FILE_MAGIC) : end])
        if tuple(about["modes"]) != INTERACTION_MODES or about["buckets"] != HASH_BUCKETS:
            raise ValueError("the model was trained for other modes or features")
        arrays = _arrays(about["arrays"], data[end + 1 :])
        scaled = arrays.pop("piece_weights") * arrays.pop("piece_scale")
        return cls(about, CueTable.loads(about["cues"]), piece_weights=scaled, **arrays)

    def probabilities(self, text: str, vector: Vector) -> FloatArray:
        """How likely each mode is, in the order of `INTERACTION_MODES`; shape (5,), summing to 1.

        `vector` is the text's by the general embedder, shape (384,). Raises ValueError for another shape.
        """
        part = head_and_tail(text)
        plain = fold_for_hashing(part)
        logits = vector @ self.vector_weights + dense_features(part, plain, len(text), self.cues) @ self.value_weights
        found = hash_ngrams(plain)
        words = int(np.searchsorted(found, HASH_BUCKETS))
        for some in (found[:words], found[words:]):
            if len(some):
                logits += self.piece_weights[some].sum(axis=0) / np.sqrt(len(some))
        return pool_confidences(softmax(logits + self.bias), **self.about["pool"])


def softmax(logits: FloatArray) -> FloatArray:
    """Numbers to shares that sum to 1, over the last axis."""
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: FloatArray = raised / raised.sum(axis=-1, keepdims=True)
    return shares


def pool_confidences(shares: FloatArray, lowest: float, highest: float) -> FloatArray:
    """Say of all confidences between the two nearly the same: from the threshold to `MAX_POOL_CONFIDENCE`; shape (..., 5).

    Below and well above the order and the distances stay. Training chooses the pool so that, of all answers in it, as
    many are right as their mean confidence says: coarser than the model's own figures, and as honest.
    """
    best = shares.max(axis=-1, keepdims=True)
    ends = [0.0, lowest, highest, highest + RAMP, 1.0]
    moved = np.interp(best, ends, [0.0, MIN_MODE_CONFIDENCE, MAX_POOL_CONFIDENCE, highest + RAMP, 1.0])
    moved = np.maximum(moved, 1 / shares.shape[-1])
    others = (1 - moved) / np.maximum(1 - best, SHARE_EPSILON)
    said: FloatArray = np.where(shares == best, moved, shares * others)
    return said


def _arrays(described: list[dict[str, Any]], data: bytes) -> dict[str, FloatArray]:
    """The arrays by name, as float64. Raises ValueError where bytes are missing or left."""
    found, start = {}, 0
    for one in described:
        count = int(np.prod(one["shape"]))
        kind = np.dtype(one["dtype"])
        values_read = np.frombuffer(data, kind, count, start).reshape(one["shape"])
        found[one["name"]] = values_read.astype(np.float64)
        start += count * kind.itemsize
    if start != len(data):
        raise ValueError("the model's file holds more than it says")
    return found
