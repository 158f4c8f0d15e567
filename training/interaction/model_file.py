"""Serialise weights for `agents.rules.interaction.classifier`; equal weights give equal bytes."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.rules.interaction.classifier import HASH_BUCKETS, MODEL_FILE_MAGIC
from schemas.state.interaction import INTERACTION_MODES

Floats = NDArray[np.float64]

DIGITS = 4
"""Decimals of a weight; smaller differences depend on the machine."""


def serialise_model(weights: dict[str, Floats], cues: str, data_sha256: str) -> bytes:
    """Return the file's content. `piece_weights`, most of it, are quantised to 8 bits with one scale per mode."""
    arrays = {name: _rounded(array) for name, array in weights.items() if name != "piece_weights"}
    arrays |= _quantised(weights["piece_weights"])
    about: dict[str, Any] = {
        "modes": INTERACTION_MODES,
        "buckets": HASH_BUCKETS,
        "data_sha256": data_sha256,
        "cues": cues,
        "arrays": [{"name": name, "dtype": array.dtype.str, "shape": array.shape} for name, array in arrays.items()],
    }
    line = json.dumps(about, ensure_ascii=False, separators=(",", ":")).encode()
    return MODEL_FILE_MAGIC + line + b"\n" + b"".join(array.tobytes() for array in arrays.values())


def _rounded(array: Floats) -> NDArray[np.float32]:
    return np.round(array, DIGITS).astype("<f4")


def _quantised(weights: Floats) -> dict[str, NDArray[Any]]:
    scale = np.maximum(np.round(np.abs(weights).max(axis=0), DIGITS), 10.0**-DIGITS) / 127
    quantised = np.clip(np.round(np.round(weights, DIGITS) / scale), -127, 127)
    return {"piece_weights": quantised.astype("<i1"), "piece_scale": scale.astype("<f4")}
