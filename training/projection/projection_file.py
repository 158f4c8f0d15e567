"""A map into the bytes that `streams.adapters.embedding.token_projection` reads; equal maps give equal bytes."""

import json

import numpy as np

from schemas.vectors import Matrix
from streams.adapters.embedding.token_projection import MAGIC

DIGITS = 4
"""Decimals of a number that are kept, of about 0.05: what differs below is the machine's arithmetic."""


def dumps(kind: str, both: Matrix) -> bytes:
    """The file's content: one map for passages and questions. `kind` says how it came about."""
    line = json.dumps({"kind": kind, "arrays": [{"name": "passage", "shape": both.shape}]}, separators=(",", ":"))
    return MAGIC + line.encode() + b"\n" + np.round(both, DIGITS).astype("<f4").tobytes()
