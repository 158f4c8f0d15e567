"""The linear map that makes a model's token states short enough to be kept, and comparable by a dot product.

Enters: token states as the model gives them, shape (tokens, states' dim), of any length but finite. Leaves: one row of
length 1 for each state, shape (tokens, `dim`), on the question's or on the passage's side; the dot product of a row of
one side with a row of the other says how alike the tokens are, in -1..1. Guaranteed: pure, the same rows for the same
states whatever stands beside them (to the last digits of the arithmetic), no row for no states.

`load` reads what `python -m training.projection` writes: `MAGIC`, one line of JSON (`kind`; `arrays`, each with its
`name` and `shape`), and the arrays' numbers one after another, little-endian float32, row by row: `passage`, and
`question` where the sides differ, each of shape (states' dim, `dim`). `name` ends with a hash of the file, so that
another file is another space. `plain` is for models that nothing was learned for.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, Self

import numpy as np

from schemas.vectors import Matrix

MAGIC = b"modestream token projection 1\n"
"""How the file begins; another format gets another number."""

LEARNED = Path(__file__).with_name("token_projection.bin")
"""The projection of all-MiniLM-L6-v2's token states, in any precision."""

PLAIN_DIM = 128
"""Most dimensions that `plain` keeps: a turn of 15 tokens takes 2 KB, and few of a similarity's differences go."""

HASH_DIGITS = 8
"""Of the file's SHA-256 in a name: enough to tell the few projections apart that a store ever sees."""

SMALLEST_LENGTH = 1e-12
"""A projected state shorter than this stays as it is, not divided by almost nothing."""


class TokenProjection:
    """One map for passages and one for questions. Any thread may use it."""

    def __init__(self, name: str, passage: Matrix, question: Matrix) -> None:
        """Take two maps of shape (states' dim, dim). Raises ValueError where they do not fit each other."""
        if passage.ndim != 2 or passage.shape != question.shape:
            raise ValueError(f"the maps' shapes {passage.shape} and {question.shape} are not those of a projection")
        self.name = name
        self.dim: int = passage.shape[1]
        self._passage = passage
        self._question = question

    @classmethod
    def load(cls, path: Path = LEARNED) -> Self:
        """Read a learned projection. Raises OSError for a missing file, ValueError for one that is none."""
        content = path.read_bytes()
        about, numbers = _parts(content, path)
        maps = _maps(about, numbers)
        if "passage" not in maps:
            raise ValueError(f"the token projection {path} has no map of passages")
        digest = hashlib.sha256(content).hexdigest()[:HASH_DIGITS]
        passage = maps["passage"]
        return cls(f"{about['kind']}-{passage.shape[1]}-{digest}", passage, maps.get("question", passage))

    @classmethod
    def plain(cls, dim: int) -> Self:
        """The map for states of `dim` dimensions without a learned one: as they are, or down to `PLAIN_DIM`."""
        if dim <= PLAIN_DIM:
            same = np.eye(dim, dtype=np.float32)
            return cls(f"identity-{dim}", same, same)
        mixed = _signed_cosines(dim)
        return cls(f"cosines-{PLAIN_DIM}", mixed, mixed)

    def of_passage(self, states: Matrix) -> Matrix:
        """Token states of a text that is kept, shape (tokens, states' dim), as rows of shape (tokens, `dim`)."""
        return _unit_rows(states @ self._passage)

    def of_question(self, states: Matrix) -> Matrix:
        """Token states of a question, as rows to compare with those of passages."""
        return _unit_rows(states @ self._question)


def _parts(content: bytes, path: Path) -> tuple[dict[str, Any], Matrix]:
    """The line about the arrays, and all their numbers in one row."""
    line, _, rest = content.removeprefix(MAGIC).partition(b"\n")
    if not content.startswith(MAGIC) or len(rest) % 4:
        raise ValueError(f"{path} is not a token projection of this version")
    about: dict[str, Any] = json.loads(line)
    return about, np.frombuffer(rest, "<f4").astype(np.float32)


def _maps(about: dict[str, Any], numbers: Matrix) -> dict[str, Matrix]:
    """The arrays by name. Raises ValueError where the file has too few numbers for them."""
    maps, begins = {}, 0
    for array in about["arrays"]:
        rows, columns = array["shape"]
        maps[array["name"]] = numbers[begins : begins + rows * columns].reshape(rows, columns)
        begins += rows * columns
    return maps


def _signed_cosines(dim: int) -> Matrix:
    """Orthonormal columns, shape (dim, `PLAIN_DIM`): cosine waves over the dimensions, signs thrown by a hash.

    The subsampled randomised cosine transform (Ailon and Chazelle 2009 with Hadamard's matrix): inner products are
    kept on average whatever the model's dimensions mean, and nothing depends on a library's random numbers.
    """
    thrown = np.frombuffer(hashlib.shake_256(MAGIC).digest(dim), np.uint8) & 1
    waves = np.linspace(1, dim - 1, PLAIN_DIM).astype(int)
    cosines = np.cos(np.pi * np.outer(np.arange(dim) + 0.5, waves) / dim) * np.sqrt(2 / dim)
    signed: Matrix = (cosines * np.where(thrown, 1.0, -1.0)[:, np.newaxis]).astype(np.float32)
    return signed


def _unit_rows(rows: Matrix) -> Matrix:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    units: Matrix = rows / np.maximum(lengths, np.float32(SMALLEST_LENGTH))[:, np.newaxis]
    return units
