"""Find tight clusters of memories that say nearly the same about the same topic. Pure.

Enters: a vector and the content stems of each memory. Leaves: clusters of row indexes, the medoid first. Guaranteed:
deterministic; at most `MAX_EXHAUSTIVE_ROWS` rows are searched until no cluster is left; time n log n plus the sum over
cells of bounded size.

The algorithm of Daura et al. ("Peptide Folding: When Simulation Meets Experiment", 1999): the memory with the most
neighbours and these neighbours are a cluster; repeat with the rest. Every member is a neighbour of its medoid, so a
cluster can't grow along a chain. Neighbours have both near vectors and shared words: vectors alone put all sentences of
one tone together, and words alone have several meanings.
"""

from collections.abc import Callable, Sequence

import numpy as np

from agents.rules.clustering.kmeans_cells import RowIndices, build_cells
from agents.rules.clustering.knn import (
    MAX_NEIGHBOURS,
    NeighbourPairs,
    NeighbourThresholds,
    background_cosine,
    find_neighbours,
    idf_weights,
    normalise_rows,
)
from schemas.models.vectors import Matrix

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
"""For a cluster that one memory can stand for. In four conversations of LoCoMo, where people hardly repeat what they
do, one cluster of three turns out of fourteen is left: the others were thanks, cheers and greetings, which
`content_stems` excludes. Daily notes are clustered whole. `shared` 0.3 mixes what is merely similar."""


def never_stop() -> bool:
    """Search until nothing more is found."""
    return False


def find_clusters(
    vectors: Matrix,
    topics: Sequence[frozenset[str]],
    *,
    min_size: int = MIN_CLUSTER_SIZE,
    should_stop: StopCondition = never_stop,
) -> list[list[int]]:
    """Return clusters of `min_size` to `MAX_CLUSTER_SIZE` row indexes of `vectors` (rows, dim).

    `topics` are the stems of each row. `should_stop` is called for each cell; if true, the clusters found so far are
    returned.
    """
    unit = normalise_rows(vectors)
    remaining, clusters, passes = np.arange(len(unit)), [], 0
    while len(remaining) >= min_size and (passes < MAX_PASSES or len(remaining) <= MAX_EXHAUSTIVE_ROWS):
        passes += 1
        found = _find_in_one_pass(unit[remaining], [topics[row] for row in remaining.tolist()], min_size, should_stop)
        if not found:
            break
        clusters += [remaining[cluster].tolist() for cluster in found]
        remaining = np.setdiff1d(remaining, np.concatenate([remaining[cluster] for cluster in found]))
        if should_stop():
            break
    return clusters


def _find_in_one_pass(
    unit: Matrix, topics: Sequence[frozenset[str]], min_size: int, should_stop: StopCondition
) -> list[RowIndices]:
    weights, min_cosine = idf_weights(topics), CLUSTER_TIGHTNESS.min_cosine(background_cosine(unit))
    pairs = []
    for cell in build_cells(unit):
        cell_topics = [topics[row] for row in cell.tolist()]
        found = find_neighbours(unit[cell], cell_topics, weights, min_cosine, CLUSTER_TIGHTNESS)
        pairs.append(NeighbourPairs(cell[found.one], cell[found.other], found.cosine))
        if should_stop():
            break
    return _take_by_most_neighbours(_dedup_pairs(pairs, len(unit)), len(unit), min_size)


def _dedup_pairs(pairs: Sequence[NeighbourPairs], size: int) -> NeighbourPairs:
    """Return each pair once, ordered by `one`, the nearest `other` first."""
    one, other, cosine = (np.concatenate(column) for column in zip(*pairs, strict=True))
    _, first = np.unique(one * size + other, return_index=True)
    order = first[np.lexsort((other[first], -cosine[first], one[first]))]
    return NeighbourPairs(one[order], other[order], cosine[order])


def _take_by_most_neighbours(pairs: NeighbourPairs, size: int, min_size: int) -> list[RowIndices]:
    """Return clusters, each the medoid followed by its neighbours, the nearest first."""
    starts = np.searchsorted(pairs.one, np.arange(size + 1))
    counts, is_free = np.diff(starts), np.ones(size, np.bool_)
    clusters = []
    while len(counts) and counts.max() >= min_size - 1:
        medoid = int(counts.argmax())
        neighbours = pairs.other[starts[medoid] : starts[medoid + 1]]
        members = np.concatenate([[medoid], neighbours[is_free[neighbours]][: MAX_CLUSTER_SIZE - 1]])
        if len(members) < min_size:
            counts[medoid] = 0
            continue
        clusters.append(members)
        is_free[members] = False
        counts[members] = 0
        for member in members.tolist():
            np.subtract.at(counts, pairs.other[starts[member] : starts[member + 1]], 1)
    return clusters
