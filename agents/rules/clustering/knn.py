"""Find neighbours among the memories of a cell: near by vectors, and of one topic by words. Pure."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import log1p
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.rules.clustering.kmeans_cells import RowIndices
from agents.rules.text.languages import courtesy_stems, detect_language, stems
from agents.rules.text.tokenizer import content_terms, tokenize
from schemas.models.vectors import Matrix, Vector


def normalise_rows(rows: Matrix) -> Matrix:
    """Scale each row to length 1; a zero row stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths == 0, 1, lengths), np.float32)


MAX_NEIGHBOURS = 100
"""Nearest neighbours per memory: a cluster has no more members."""

GOLDEN, SHIFTS = (5**0.5 - 1) / 2, 12
"""Multiples of the golden section are spread evenly and share no period with what people do every week."""


@dataclass(frozen=True, slots=True)
class NeighbourThresholds:
    """Minimum similarity of neighbours.

    `near`: position of the cosine between the background cosine (0) and 1; the cosine of unrelated texts depends on the
    embedder: 0.1 with MiniLM, 0.75 with e5. `cosine`: sufficient in any case, for memories of one topic only. `shared`:
    Dice coefficient of the stems, weighted by idf. `stems`: number of shared stems; `content_stems`: those of them that
    are no courtesy words (`agents.rules.text.languages`).
    """

    near: float
    cosine: float
    shared: float
    stems: int
    content_stems: int

    def min_cosine(self, background: float) -> float:
        """Return the minimum cosine of neighbours, given that of unrelated memories."""
        return min(self.cosine, background + self.near * (1 - background))


class NeighbourPairs(NamedTuple):
    """Row indexes of neighbours, and their cosine.

    A pair occurs in both directions, unless one is not among the `MAX_NEIGHBOURS` nearest of the other.
    """

    one: RowIndices
    other: RowIndices
    cosine: Vector


def topic_stems(text: str, names: Collection[str] = ()) -> frozenset[str]:
    """Return the content stems of a text without the speakers' `names`, which occur with any topic."""
    terms = [term for term in content_terms(text) if term not in names]
    return frozenset(stems(terms, detect_language(tokenize(text))))


def background_cosine(unit: Matrix) -> float:
    """Return the median cosine of row pairs at several distances in the matrix."""
    if len(unit) < 2:
        return 0.0
    shifts = {max(1, int(len(unit) * (step * GOLDEN % 1))) for step in range(1, SHIFTS + 1)}
    return float(np.median([np.einsum("ij,ij->i", unit, np.roll(unit, shift, axis=0)) for shift in shifts]))


def idf_weights(topics: Sequence[frozenset[str]]) -> Mapping[str, float]:
    """Return ln(1 + N / n) for each stem, an inverse document frequency that is positive for stems of all topics."""
    counts = Counter(chain.from_iterable(topics))
    return {stem: log1p(len(topics) / count) for stem, count in counts.items()}


def find_neighbours(
    unit: Matrix,
    topics: Sequence[frozenset[str]],
    weights: Mapping[str, float],
    min_cosine: float,
    thresholds: NeighbourThresholds,
) -> NeighbourPairs:
    """Return the neighbours among the memories of a cell, with vectors `unit`, stems `topics` and idf `weights`."""
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -1)
    is_near = cosines >= min_cosine
    # Most rows have no near row: skip their words.
    rows = np.flatnonzero(is_near.any(axis=1))
    is_neighbour = _share_topic([topics[row] for row in rows.tolist()], weights, thresholds)
    is_neighbour &= is_near[np.ix_(rows, rows)]
    one, other = np.nonzero(_is_nearest(np.where(is_neighbour, cosines[np.ix_(rows, rows)], np.float32(-1))))
    return NeighbourPairs(rows[one], rows[other], cosines[rows[one], rows[other]])


def _share_topic(
    topics: Sequence[frozenset[str]], weights: Mapping[str, float], thresholds: NeighbourThresholds
) -> NDArray[np.bool_]:
    """Return which topics reach the thresholds of shared stems, shape (topics, topics)."""
    counts = Counter(chain.from_iterable(topics))
    columns = {stem: index for index, stem in enumerate(sorted(one for one, count in counts.items() if count > 1))}
    has = np.zeros((len(topics), max(1, len(columns))), np.float32)
    for row, topic in enumerate(topics):
        has[row, [columns[stem] for stem in topic if stem in columns]] = 1
    weight = np.array([weights[stem] for stem in columns] or [0.0], np.float32)
    total = np.array([sum(weights[stem] for stem in topic) for topic in topics], np.float32)
    has_dice: NDArray[np.bool_] = 2 * ((has * weight) @ has.T) >= thresholds.shared * np.add.outer(total, total)
    has_stems: NDArray[np.bool_] = has @ has.T >= thresholds.stems
    content = has[:, [column for stem, column in columns.items() if stem not in courtesy_stems()]]
    has_content: NDArray[np.bool_] = content @ content.T >= thresholds.content_stems
    return has_dice & has_stems & has_content


def _is_nearest(cosines: Matrix) -> NDArray[np.bool_]:
    """Return which are among the `MAX_NEIGHBOURS` nearest of each row; -1 marks no neighbour."""
    is_nearest: NDArray[np.bool_] = cosines > -1
    if len(cosines) > MAX_NEIGHBOURS:
        smallest = np.partition(cosines, -MAX_NEIGHBOURS, axis=1)[:, [-MAX_NEIGHBOURS]]
        is_nearest = is_nearest & (cosines >= smallest)
    return is_nearest
