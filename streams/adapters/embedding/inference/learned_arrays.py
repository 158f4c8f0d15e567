"""What was learned about a model's vectors, as it lies in a file beside this one.

Enters: a file that `python -m training.projection` wrote: `LEARNED_MAGIC`, one line of JSON (`kind`; `arrays`, each with its
`name` and `shape`), and the arrays' numbers one after another, little-endian float32, row by row. Leaves: the arrays
by name. Guaranteed: another content has another name, so that it makes another vector space.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from schemas.vectors import Matrix

LEARNED_MAGIC = b"modestream token projection 1\n"
"""How the file begins; another format gets another number."""

HASH_DIGITS = 8
"""Of the file's SHA-256 in a name: enough to tell the few files apart that a store ever sees."""


@dataclass(frozen=True, slots=True)
class LearnedArrays:
    """The arrays of a file. `kind` says how they came about, `digest` tells the file from others."""

    kind: str
    digest: str
    arrays: Mapping[str, Matrix]


def read_learned(path: Path) -> LearnedArrays:
    """Read a file. Raises OSError for a missing one, ValueError for one that is none, or was cut off."""
    content = path.read_bytes()
    line, _, rest = content.removeprefix(LEARNED_MAGIC).partition(b"\n")
    if not content.startswith(LEARNED_MAGIC) or len(rest) % 4:
        raise ValueError(f"{path} is not a token projection of this version")
    about: dict[str, Any] = json.loads(line)
    numbers = np.frombuffer(rest, "<f4").astype(np.float32)
    digest = hashlib.sha256(content).hexdigest()[:HASH_DIGITS]
    return LearnedArrays(about["kind"], digest, _arrays(about["arrays"], numbers))


def _arrays(described: list[dict[str, Any]], numbers: Matrix) -> dict[str, Matrix]:
    """The arrays by name. Raises ValueError where the file has too few numbers for them."""
    arrays, begins = {}, 0
    for array in described:
        rows, columns = array["shape"]
        arrays[array["name"]] = numbers[begins : begins + rows * columns].reshape(rows, columns)
        begins += rows * columns
    return arrays
