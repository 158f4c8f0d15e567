"""Reads the file of arrays that were learned from a model's vectors; it lies beside this module.

Enters: a file written by `python -m training.projection`: `LEARNED_MAGIC`, one line of JSON (`kind`; `arrays`, each
with its `name` and `shape`), then the arrays' numbers, little-endian float32, row by row. Leaves: the arrays by name.
Guaranteed: different content has a different digest, and so makes a different vector space.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from schemas.models.vectors import Matrix

LEARNED_MAGIC = b"modestream token projection 1\n"
"""The first line of the file; a new format gets a new number."""

HASH_DIGITS = 8
"""Digits of the file's SHA-256 in a name: enough for the few files that a store ever sees."""


@dataclass(frozen=True, slots=True)
class LearnedArrays:
    """The arrays of a file. `kind` is how they were learned, `digest` identifies the file."""

    kind: str
    digest: str
    arrays: Mapping[str, Matrix]


def read_learned(path: Path) -> LearnedArrays:
    """Read a file. Raises OSError if it is missing, ValueError if it has another format or is truncated."""
    content = path.read_bytes()
    line, _, rest = content.removeprefix(LEARNED_MAGIC).partition(b"\n")
    if not content.startswith(LEARNED_MAGIC) or len(rest) % 4:
        raise ValueError(f"{path} is not a token projection of this version")
    header: dict[str, Any] = json.loads(line)
    numbers = np.frombuffer(rest, "<f4").astype(np.float32)
    digest = hashlib.sha256(content).hexdigest()[:HASH_DIGITS]
    return LearnedArrays(header["kind"], digest, _arrays(header["arrays"], numbers))


def _arrays(described: list[dict[str, Any]], numbers: Matrix) -> dict[str, Matrix]:
    """Return the arrays by name. Raises ValueError if the file has too few numbers."""
    arrays, start = {}, 0
    for array in described:
        rows, columns = array["shape"]
        arrays[array["name"]] = numbers[start : start + rows * columns].reshape(rows, columns)
        start += rows * columns
    return arrays
