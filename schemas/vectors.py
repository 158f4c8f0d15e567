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

Spans = NDArray[np.int32]
"""Shape (tokens, 2): where each token starts and ends in its text, in code points, the end not included."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """One text through one embedder, both from the same pass.

    `pooled` has length 1 where the embedder normalises. `tokens` is what late interaction compares, in the order of
    the text, shape (tokens, `token_dim` of the fingerprint): of a question a row of length 1 for each token but the
    special ones, and in `spans` where it stands in the text that was given; of a passage a row for each token of a
    telling word, on a grid of 8-bit integers and so only nearly of length 1, without `spans`. No row where the model
    gives no token vectors. `interaction_probabilities` is how likely each interaction mode is, shape (5,), where whoever embeds a
    passage reads it as well.
    """

    pooled: Vector
    tokens: Matrix
    interaction_probabilities: Vector | None = None
    spans: Spans | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """One memory's vectors and what queries filter by. Without token vectors `tokens` is None or has no row."""

    memory_id: str
    vector: Vector
    boundary: str
    partition: int
    scope: Mapping[str, str]
    mode: str
    type: str
    occurred_ms: int
    content_hash: str
    tokens: Matrix | None = None


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """Which memories a read may see: always one boundary; None means any value."""

    boundary: str
    scope: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    modes: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def admits(self, mode: str, type_: str, scope: Mapping[str, str]) -> bool:
        """Whether a memory with these may be seen, if its boundary and time are right."""
        return (
            (self.modes is None or mode in self.modes)
            and (self.types is None or type_ in self.types)
            and all(values is None or scope.get(name) in values for name, values in self.scope.items())
        )


class Scored(NamedTuple):
    """A memory and its cosine with the query, in -1..1."""

    memory_id: str
    score: float
