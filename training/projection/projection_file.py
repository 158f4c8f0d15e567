"""Serialise learned arrays for `streams.adapters.embedding.inference.local_model`; equal arrays give equal bytes."""

import json
from collections.abc import Mapping

import numpy as np

from schemas.models.vectors import Matrix
from streams.adapters.embedding.inference.local_model import LEARNED_MAGIC

DIGITS = 4
"""Decimals of numbers of about 0.05; smaller differences depend on the machine."""


def serialise_arrays(kind: str, arrays: Mapping[str, Matrix]) -> bytes:
    """Return the file's content: `passage`, the map of all tokens, and further arrays; `kind` names the method."""
    described = [{"name": name, "shape": array.shape} for name, array in arrays.items()]
    line = json.dumps({"kind": kind, "arrays": described}, separators=(",", ":"))
    numbers = b"".join(np.round(array, DIGITS).astype("<f4").tobytes() for array in arrays.values())
    return LEARNED_MAGIC + line.encode() + b"\n" + numbers
