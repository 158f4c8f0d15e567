"""Types of the vector index: encoded texts, points, filters, scored ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self, overload

import numpy as np
from modestream_client.arguments import Filters
from numpy.typing import NDArray

Vector = NDArray[np.float32]
"""Shape (dim,), finite."""

Matrix = NDArray[np.float32]
"""Shape (tokens, dim), finite."""

Spans = NDArray[np.int32]
"""Shape (tokens, 2): start and end of each token in its text, in code points, the end excluded."""


@dataclass(frozen=True, slots=True)
class PassageVectors:
    """The vectors of the passages of a long text, in order.

    `pooled` has shape (passages, dim), a row for each passage. `token_counts` has shape (passages,): the number of the
    text's token vectors in each passage. They are in the order of the passages, so the counts sum to their number.
    """

    pooled: Matrix
    token_counts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.pooled)

    def mean(self) -> Vector:
        """Return the mean of the vectors, each scaled to length 1: times a question, the mean of their cosines."""
        wide = self.pooled.astype(np.float64)
        lengths = np.linalg.norm(wide, axis=1, keepdims=True)
        mean: Vector = (wide / np.where(lengths == 0, 1, lengths)).mean(axis=0).astype(np.float32)
        return mean


@dataclass(frozen=True, slots=True)
class Encoded:
    """One text through one embedder.

    `pooled` has length 1 if the embedder normalises and the text is not cut. `tokens` are the vectors for late
    interaction in text order, shape (tokens, `token_dim` of the fingerprint); no rows if the model gives none. Of a
    query: a row of length 1 for each token except special ones, with its position in `spans`. Of a passage: a row for
    each token of a content word, quantised to 8-bit integers and so only nearly of length 1, without `spans`.

    A text that is cut into passages (`agents.rules.text.passages`) has `passages`; its `pooled` is their mean, shorter
    than 1, and of length 1 if an index returned it. Its `tokens` are theirs, one passage after the other. A shorter
    text has None.
    """

    pooled: Vector
    tokens: Matrix
    spans: Spans | None = None
    passages: PassageVectors | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """One memory's vectors and filter fields, as in `Encoded`.

    Without token vectors `tokens` is None or empty. With `passages` an index stores their mean in place of `vector`.
    """

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
    passages: PassageVectors | None = None


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """The memories visible to a read: of one boundary; None admits any value.

    Only columns evaluate `filters` and `as_of_ms` (`MemoryColumns.admitted`): vectors are searched among the memories
    that they admit. As of a time, memories accepted until then are visible, unless superseded by then.
    """

    boundary: str
    scope: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    modes: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    filters: Filters | None = None
    as_of_ms: int | None = None

    @property
    def needs_columns(self) -> bool:
        """True if columns alone decide which memories are admitted."""
        return self.filters is not None or self.as_of_ms is not None

    def admits(self, mode: str, type_: str, scope: Mapping[str, str]) -> bool:
        """True if mode, type and scope pass the filter; boundary, times and `filters` are not checked."""
        return (
            (self.modes is None or mode in self.modes)
            and (self.types is None or type_ in self.types)
            and all(values is None or scope.get(name) in values for name, values in self.scope.items())
        )


class Scored(NamedTuple):
    """A memory and its score: its cosine with the query, in -1..1, or of a cut text the mean of its passages'."""

    memory_id: str
    score: float


@dataclass(frozen=True, slots=True)
class ScoredPassages:
    """Passages with their scores, in columns of shape (passages,), in any order.

    `rows` are those of their memories in a table of ids, `parts` their numbers in their texts, from 0.
    """

    rows: NDArray[np.int64]
    parts: NDArray[np.int64]
    scores: NDArray[np.float64]


class Nearest(Sequence[Scored]):
    """Memories with their scores, best first, in columns: thousands cost no object each.

    They are the `rows` of a `table` of ids, which is append-only. `passages` are those from which the scores of long
    texts come; None if none was scored. A slice has all of them.
    """

    __slots__ = ("passages", "rows", "scores", "table")

    def __init__(
        self,
        table: Sequence[str],
        scores: NDArray[np.float64],
        rows: NDArray[np.int64] | None = None,
        passages: ScoredPassages | None = None,
    ) -> None:
        """Without `rows` the table has as many ids as there are scores, in their order."""
        self.table = table
        self.scores = scores
        self.rows = np.arange(len(scores)) if rows is None else rows
        self.passages = passages

    @classmethod
    def of(cls, hits: Sequence[Scored]) -> Self:
        if isinstance(hits, cls):
            return hits
        return cls([hit.memory_id for hit in hits], np.array([hit.score for hit in hits], np.float64))

    @property
    def memory_ids(self) -> list[str]:
        """The ids, best first."""
        return list(map(self.table.__getitem__, self.rows.tolist()))

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.scores)

    @overload
    def __getitem__(self, place: int) -> Scored: ...

    @overload
    def __getitem__(self, place: slice) -> Self: ...

    def __getitem__(self, place: int | slice) -> Scored | Self:
        if isinstance(place, slice):
            return type(self)(self.table, self.scores[place], self.rows[place], self.passages)
        return Scored(self.table[int(self.rows[place])], float(self.scores[place]))
