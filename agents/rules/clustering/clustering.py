"""Memories that say nearly the same of the same: tight clusters by vector and by topic. Pure.

Enters: a vector and the telling stems of each memory. Leaves: clusters as places of memories, the medoid first.
Guaranteed: the same input always gives the same clusters; what is left over has none, unless it is more than `MAX_EXHAUSTIVE_ROWS`;
time n log n beside the sum over cells of bounded size.

The algorithm of Daura et al. ("Peptide Folding: When Simulation Meets Experiment", 1999): the memory with most
neighbours is a cluster with them, and so on with the rest. Every member is a neighbour of its medoid, so a cluster
can't grow along a chain. Two memories are neighbours when both their vectors are near and they share their words: near
alone are all sentences of one tone, and words alone mean different things.
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
)
from agents.rules.clustering.normalise import normalise_rows
from schemas.vectors import Matrix

StopCondition = Callable[[], bool]
"""Whether to stop looking for more."""

MIN_CLUSTER_SIZE = 3
"""Memories of a cluster (CONTRACT §6)."""

MAX_CLUSTER_SIZE = MAX_NEIGHBOURS
"""Memories of a cluster: what stands for more would have a record of evidence and little else."""

MAX_EXHAUSTIVE_ROWS, MAX_PASSES = 4096, 2
"""So many are sought among until nothing is found; more have so many passes, as those that follow find one in a hundred
and take as long. Whoever asks again about the same remembers that he has asked."""

CLUSTER_TIGHTNESS = NeighbourThresholds(near=0.5, cosine=0.85, shared=0.4, stems=3, content_stems=2)
"""For what is to stand for its members. Of four conversations of LoCoMo, where people hardly repeat what they do, one
cluster of three turns is left of fourteen: the others were thanks, cheers and greetings, which `saying` leaves out.
Notes of every day are taken whole. With `shared` 0.3 what is merely alike is mixed."""


def never_stop() -> bool:
    """Look until nothing more is found."""
    return False


def find_clusters(
    vectors: Matrix,
    topics: Sequence[frozenset[str]],
    *,
    min_size: int = MIN_CLUSTER_SIZE,
    should_stop: StopCondition = never_stop,
) -> list[list[int]]:
    """Places of rows of `vectors` (rows, dim), in clusters of `min_size` to `MAX_CLUSTER_SIZE`; `topics` are the stems of each row.

    Once it is `should_stop`, which is asked for each cell, what was found so far is given.
    """
    unit = normalise_rows(vectors)
    left, found, passes = np.arange(len(unit)), [], 0
    while len(left) >= min_size and (passes < MAX_PASSES or len(left) <= MAX_EXHAUSTIVE_ROWS):
        passes += 1
        some = _sought(unit[left], [topics[place] for place in left.tolist()], min_size, should_stop)
        if not some:
            break
        found += [left[cluster].tolist() for cluster in some]
        left = np.setdiff1d(left, np.concatenate([left[cluster] for cluster in some]))
        if should_stop():
            break
    return found


def _sought(unit: Matrix, topics: Sequence[frozenset[str]], least: int, enough: StopCondition) -> list[RowIndices]:
    """One pass over all."""
    weights, from_cosine = idf_weights(topics), CLUSTER_TIGHTNESS.min_cosine(background_cosine(unit))
    pairs = []
    for cell in build_cells(unit):
        there = [topics[place] for place in cell.tolist()]
        found = find_neighbours(unit[cell], there, weights, from_cosine, CLUSTER_TIGHTNESS)
        pairs.append(NeighbourPairs(cell[found.one], cell[found.other], found.cosine))
        if enough():
            break
    return _by_most_neighbours(_joined(pairs, len(unit)), len(unit), least)


def _joined(pairs: Sequence[NeighbourPairs], size: int) -> NeighbourPairs:
    """All pairs once, by the first and then the nearest."""
    one, other, cosine = (np.concatenate(column) for column in zip(*pairs, strict=True))
    _, first = np.unique(one * size + other, return_index=True)
    order = first[np.lexsort((other[first], -cosine[first], one[first]))]
    return NeighbourPairs(one[order], other[order], cosine[order])


def _by_most_neighbours(pairs: NeighbourPairs, size: int, least: int) -> list[RowIndices]:
    """Clusters, the medoid first and then its neighbours, the nearest first."""
    starts = np.searchsorted(pairs.one, np.arange(size + 1))
    counts, free = np.diff(starts), np.ones(size, np.bool_)
    found = []
    while len(counts) and counts.max() >= least - 1:
        medoid = int(counts.argmax())
        beside = pairs.other[starts[medoid] : starts[medoid + 1]]
        members = np.concatenate([[medoid], beside[free[beside]][: MAX_CLUSTER_SIZE - 1]])
        if len(members) < least:
            counts[medoid] = 0
            continue
        found.append(members)
        free[members] = False
        counts[members] = 0
        for member in members.tolist():
            np.subtract.at(counts, pairs.other[starts[member] : starts[member + 1]], 1)
    return found
