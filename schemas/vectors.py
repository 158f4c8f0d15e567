"""What the vector index takes and gives: points, filters, scored ids."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
"""Shape (dim,), finite."""

Matrix = NDArray[np.float32]
"""Shape (tokens, dim), finite."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """One text through one embedder, both from the same pass.

    `pooled` has length 1 where the embedder normalises; `tokens` holds one row of length 1 for each token of the
    text without the special ones, in order, and no row where the model gives no token vectors. `shares` is how likely
    each interaction mode is, shape (5,), where whoever embeds a passage reads it as well.
    """

    pooled: Vector
    tokens: Matrix
    shares: Vector | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """One memory's vector and what queries filter by."""

    memory_id: str
    vector: Vector
    boundary: str
    partition: int
    scope: Mapping[str, str]
    mode: str
    type: str
    occurred_ms: int
    content_hash: str


@dataclass(frozen=True, slots=True)
class Where:
    """Which memories a read may see: always one boundary; None means any value."""

    boundary: str
    scope: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    modes: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    since_ms: int | None = None
    until_ms: int | None = None


class Scored(NamedTuple):
    """A memory and its cosine with the query, in -1..1."""

    memory_id: str
    cosine: float
