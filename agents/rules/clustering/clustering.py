"""Find neighbours and tight clusters of memories that say nearly the same about the same topic. Pure.

Enters: a vector and the content stems of each memory. Leaves: clusters of row indexes, the medoid first. Guaranteed:
deterministic; at most `MAX_EXHAUSTIVE_ROWS` rows are searched until no cluster is left; time n log n plus the sum over
cells of bounded size.

The algorithm of Daura et al. ("Peptide Folding: When Simulation Meets Experiment", 1999): the memory with the most
neighbours and these neighbours are a cluster; repeat with the rest. Every member is a neighbour of its medoid, so a
cluster can't grow along a chain. Neighbours have both near vectors and shared words: vectors alone put all sentences of
one tone together, and words alone have several meanings.

All-pairs comparison stays within overlapping cells of bounded size. Their centres come from recursive bisecting
spherical k-means (Steinbach, Karypis and Kumar, "A Comparison of Document Clustering Techniques", 2000), initialised
along the principal direction (Boley, "Principal Direction Divisive Partitioning", 1998). Every vector is in the cells
of its two nearest centres, like probing an inverted file: near vectors nearly always share a cell. An unbalanced cut is
replaced by one at the median: the depth is that of a balanced tree.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import log1p
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.rules.text.languages import courtesy_stems, detect_language, stems
from agents.rules.text.tokenizer import content_terms, tokenize
from schemas.models.vectors import Matrix, Vector

RowIndices = NDArray[np.int64]
"""Row indexes of a matrix, ascending."""

SideMask = NDArray[np.bool_]

MAX_VECTORS_PER_CENTRE = 256
"""Vectors per centre: with two cells per vector a cell has about 500, and its cosines take a megabyte and some
milliseconds."""

MAX_CELL_SIZE = 1024
"""Vectors per cell: a larger one, as of equal vectors, is split in order."""

CELLS_PER_VECTOR = 2

KMEANS_ITERATIONS = 4
"""For k-means of one cut, and for the principal direction: few vectors change sides after that."""

CUT_SAMPLE_SIZE = 512
"""Maximum vectors to find the cut with: of more, every n-th."""

MIN_SIDE_SHARE = 1 / 8
"""Minimum share of a side: below, an outlier was cut off, and the depth would grow with the number of outliers."""


def build_cells(vectors: Matrix) -> list[RowIndices]:
    """Return overlapping cells of row indexes of a matrix (rows, dim) of unit vectors."""
    if len(vectors) <= MAX_CELL_SIZE:
        return [np.arange(len(vectors))] if len(vectors) else []
    centres = np.stack([_centre(vectors[rows]) for rows in _bisect(vectors)])
    nearest = np.argpartition(-(vectors @ centres.T), CELLS_PER_VECTOR, axis=1)[:, :CELLS_PER_VECTOR]
    owners, rows = nearest.ravel(), np.repeat(np.arange(len(vectors)), CELLS_PER_VECTOR)
    order = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[order], np.arange(1, len(centres)))
    cells = np.split(rows[order], bounds)
    return [cell[start : start + MAX_CELL_SIZE] for cell in cells for start in range(0, len(cell), MAX_CELL_SIZE)]


def _bisect(vectors: Matrix) -> list[RowIndices]:
    pending, parts = [np.arange(len(vectors))], []
    while pending:
        rows = pending.pop()
        if len(rows) <= MAX_VECTORS_PER_CENTRE:
            parts.append(rows)
        else:
            part = vectors[rows]
            projection = part @ _cut_direction(part[:: -(-len(part) // CUT_SAMPLE_SIZE)])
            is_right: SideMask = projection > 0
            if not MIN_SIDE_SHARE <= is_right.mean() <= 1 - MIN_SIDE_SHARE:
                # Too uneven: the upper half.
                is_right = np.zeros(len(part), np.bool_)
                is_right[np.argsort(projection, kind="stable")[len(part) // 2 :]] = True
            pending += [rows[is_right], rows[~is_right]]
    return parts


def _cut_direction(vectors: Matrix) -> Vector:
    """Return the difference of two centres, found by k-means from both sides of the principal direction."""
    centred = vectors - vectors.mean(axis=0)
    direction: Vector = centred[np.argmax(np.einsum("ij,ij->i", centred, centred))]
    for _ in range(KMEANS_ITERATIONS):
        direction = _unit_vector(((centred @ direction) @ centred).astype(np.float32))
    is_right: SideMask = centred @ direction > 0
    for _ in range(KMEANS_ITERATIONS):
        if not is_right.any() or is_right.all():
            break
        direction = _centre(vectors[is_right]) - _centre(vectors[~is_right])
        is_right = vectors @ direction > 0
    return direction


def _centre(vectors: Matrix) -> Vector:
    return _unit_vector(vectors.sum(axis=0, dtype=np.float32))


def _unit_vector(vector: Vector) -> Vector:
    length = np.float32(np.linalg.norm(vector))
    unit: Vector = vector / length if length else vector
    return unit


def normalise_rows(rows: Matrix) -> Matrix:
    """Scale each row to length 1; a zero row stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths == 0, 1, lengths), np.float32)


MAX_NEIGHBOURS = 100
"""Nearest neighbours per memory: a cluster has no more members."""

GOLDEN, SHIFTS = (5**0.5 - 1) / 2, 12
"""Multiples of the golden section are spread evenly and share no period with weekly habits."""


@dataclass(frozen=True, slots=True)
class NeighbourThresholds:
    """Minimum similarity of neighbours.

    `near`: position of the cosine between the background cosine (0) and 1; the cosine of unrelated texts depends on the
    embedder: 0.1 with MiniLM, 0.75 with e5. `cosine`: sufficient in any case, for memories of one topic only. `shared`:
    Dice coefficient of the stems, weighted by idf. `stems`: number of shared stems; `content_stems`: those of them that
    are not courtesy words (`agents.rules.text.languages`).
    """

    near: float
    cosine: float
    shared: float
    stems: int
    content_stems: int

    def min_cosine(self, background: float) -> float:
        """Return the minimum cosine of neighbours, given the cosine of unrelated memories."""
        return min(self.cosine, background + self.near * (1 - background))


class NeighbourPairs(NamedTuple):
    """Row indexes of neighbours, and their cosine.

    A pair occurs in both directions, unless the first is not among the `MAX_NEIGHBOURS` nearest of the other.
    """

    row: RowIndices
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
    # -1 marks no neighbour; of the others, the `MAX_NEIGHBOURS` nearest of each row.
    of_rows = np.where(is_neighbour, cosines[np.ix_(rows, rows)], np.float32(-1))
    is_nearest: NDArray[np.bool_] = of_rows > -1
    if len(of_rows) > MAX_NEIGHBOURS:
        is_nearest &= of_rows >= np.partition(of_rows, -MAX_NEIGHBOURS, axis=1)[:, [-MAX_NEIGHBOURS]]
    near, other = np.nonzero(is_nearest)
    return NeighbourPairs(rows[near], rows[other], cosines[rows[near], rows[other]])


def _share_topic(
    topics: Sequence[frozenset[str]], weights: Mapping[str, float], thresholds: NeighbourThresholds
) -> NDArray[np.bool_]:
    """Return which topics reach the thresholds of shared stems, shape (topics, topics)."""
    counts = Counter(chain.from_iterable(topics))
    columns = {stem: index for index, stem in enumerate(sorted(stem for stem, count in counts.items() if count > 1))}
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


def cluster_by_average_linkage(unit: Matrix, min_cosine: float) -> list[list[int]]:
    """Merge groups until no two have a mean cosine of `min_cosine` or more."""
    cosines = (unit @ unit.T).astype(np.float64)
    np.fill_diagonal(cosines, -np.inf)
    groups = [[row] for row in range(len(unit))]
    while groups and cosines.max() >= min_cosine:
        first, other = divmod(int(cosines.argmax()), len(unit))
        size_one, size_other = len(groups[first]), len(groups[other])
        mean = (size_one * cosines[first] + size_other * cosines[other]) / (size_one + size_other)
        cosines[first], cosines[:, first] = mean, mean
        cosines[other], cosines[:, other], cosines[first, first] = -np.inf, -np.inf, -np.inf
        groups[first] += groups[other]
        groups[other] = []
    remaining = [sorted(group) for group in groups if group]
    return sorted(remaining, key=lambda group: (-len(group), group))


StopCondition = Callable[[], bool]
"""True to stop the search."""

MIN_CLUSTER_SIZE = 3
"""Minimum memories per cluster (`docs/contract.md`)."""

MAX_CLUSTER_SIZE = MAX_NEIGHBOURS
"""Maximum memories per cluster: the record of a larger one would be mostly evidence."""

MAX_EXHAUSTIVE_ROWS, MAX_PASSES = 4096, 2
"""Up to this many rows are searched until nothing is found; more get two passes, since later passes find one in a
hundred and take as long."""

CLUSTER_TIGHTNESS = NeighbourThresholds(near=0.5, cosine=0.85, shared=0.4, stems=3, content_stems=2)
"""For a cluster that one memory can stand for. In four conversations of LoCoMo, where people hardly repeat activities,
one cluster of three turns out of fourteen is left: the others were thanks, cheers and greetings, which `content_stems`
excludes. Daily notes are clustered whole. `shared` 0.3 mixes merely similar turns."""


def never_stop() -> bool:
    """Search until nothing more is found."""
    return False


def find_clusters(
    vectors: Matrix,
    topics: Sequence[frozenset[str]],
    *,
    min_size: int = MIN_CLUSTER_SIZE,
    should_stop: StopCondition = never_stop,
    tightness: NeighbourThresholds = CLUSTER_TIGHTNESS,
) -> list[list[int]]:
    """Return clusters of `min_size` to `MAX_CLUSTER_SIZE` row indexes of `vectors` (rows, dim).

    `topics` are the stems of each row. `should_stop` is called for each cell; if true, the clusters found so far are
    returned.
    """
    unit = normalise_rows(vectors)
    remaining, clusters, passes = np.arange(len(unit)), [], 0
    while len(remaining) >= min_size and (passes < MAX_PASSES or len(remaining) <= MAX_EXHAUSTIVE_ROWS):
        passes += 1
        new_clusters = _find_in_one_pass(
            unit[remaining], [topics[row] for row in remaining.tolist()], min_size, should_stop, tightness
        )
        if not new_clusters:
            break
        clusters += [remaining[cluster].tolist() for cluster in new_clusters]
        remaining = np.setdiff1d(remaining, np.concatenate([remaining[cluster] for cluster in new_clusters]))
        if should_stop():
            break
    return clusters


def _find_in_one_pass(
    unit: Matrix,
    topics: Sequence[frozenset[str]],
    min_size: int,
    should_stop: StopCondition,
    tightness: NeighbourThresholds,
) -> list[RowIndices]:
    weights, min_cosine = idf_weights(topics), tightness.min_cosine(background_cosine(unit))
    pairs = []
    for cell in build_cells(unit):
        cell_topics = [topics[row] for row in cell.tolist()]
        neighbours = find_neighbours(unit[cell], cell_topics, weights, min_cosine, tightness)
        pairs.append(NeighbourPairs(cell[neighbours.row], cell[neighbours.other], neighbours.cosine))
        if should_stop():
            break
    # Each pair once, ordered by row, the nearest of the others first.
    first, other, cosine = (np.concatenate(column) for column in zip(*pairs, strict=True))
    _, once = np.unique(first * len(unit) + other, return_index=True)
    order = once[np.lexsort((other[once], -cosine[once], first[once]))]
    unique = NeighbourPairs(first[order], other[order], cosine[order])
    # Clusters in order of most neighbours: each the medoid followed by its neighbours, the nearest first.
    size = len(unit)
    starts = np.searchsorted(unique.row, np.arange(size + 1))
    counts, is_free = np.diff(starts), np.ones(size, np.bool_)
    clusters = []
    while len(counts) and counts.max() >= min_size - 1:
        medoid = int(counts.argmax())
        near = unique.other[starts[medoid] : starts[medoid + 1]]
        members = np.concatenate([[medoid], near[is_free[near]][: MAX_CLUSTER_SIZE - 1]])
        if len(members) < min_size:
            counts[medoid] = 0
            continue
        clusters.append(members)
        is_free[members] = False
        counts[members] = 0
        for member in members.tolist():
            np.subtract.at(counts, unique.other[starts[member] : starts[member + 1]], 1)
    return clusters
