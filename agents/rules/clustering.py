"""Memories that say nearly the same of the same: tight clusters by vector and by topic. Pure.

Enters: a vector and the telling stems of each memory. Leaves: clusters as places of memories, the medoid first.
Guaranteed: the same input always gives the same clusters; what is left over has none, so that a search among it finds
nothing; time n log n beside the sum over cells of bounded size.

Within a cell the algorithm of Daura et al. ("Peptide Folding: When Simulation Meets Experiment", 1999): the memory
with most neighbours is a cluster with them, and so on with the rest. Every member is a neighbour of its medoid, so a
cluster can't grow along a chain. Two memories are neighbours when both their vectors are near and they share their
words: near alone are all sentences of one tone, and words alone mean different things.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import log1p

import numpy as np

from agents.rules.cells import Places, cells
from agents.rules.languages import language_of
from agents.rules.stemming import stems
from agents.rules.words import telling_terms, terms
from schemas.vectors import Matrix

LEAST = 3
"""Memories of a cluster (CONTRACT §6)."""

MOST = 100
"""Memories of a cluster: what stands for more would have a record of evidence and little else."""


@dataclass(frozen=True, slots=True)
class Tightness:
    """When two memories are neighbours.

    `near`: how far on the way from the cosine of any two memories here to 1 theirs must be. It depends on the embedder
    what cosine unrelated texts have: 0.1 with MiniLM, 0.75 with e5. `cosine`: what is near in any case, for where all
    memories are of one topic. `shared`: Dice coefficient of their stems, each weighted by how rare it is here. `stems`:
    how many they share at least.
    """

    near: float
    cosine: float
    shared: float
    stems: int


TIGHT = Tightness(near=0.5, cosine=0.85, shared=0.4, stems=3)
"""For what is to stand for its members. Of three conversations of LoCoMo it takes 2 to 5 % of the turns, of ours, where
people hardly repeat themselves, none; with `shared` 0.3 it takes 10 %, and begins to mix what is merely alike."""

GOLDEN, SHIFTS = (5**0.5 - 1) / 2, 12
"""Multiples of the golden section are spread evenly, and have no period in common with what people do every week."""


def clusters(
    vectors: Matrix, topics: Sequence[frozenset[str]], *, least: int = LEAST, tightness: Tightness = TIGHT
) -> list[list[int]]:
    """Places of rows of `vectors` (rows, dim), in clusters of `least` to `MOST`; `topics` are the stems of each row."""
    unit = _of_length_one(vectors)
    left, found = np.arange(len(unit)), []
    while len(left) >= least:
        some = _sought(unit[left], [topics[place] for place in left.tolist()], least, tightness)
        if not some:
            break
        found += [left[cluster].tolist() for cluster in some]
        left = np.setdiff1d(left, np.concatenate([left[cluster] for cluster in some]))
    return found


def topic_of(text: str, names: Collection[str] = ()) -> frozenset[str]:
    """The telling stems of a text, but for the names of those who speak here: they are addressed whatever the topic."""
    telling = [term for term in telling_terms(text) if term not in names]
    return frozenset(stems(telling, language_of(terms(text))))


def usual_cosine(unit: Matrix) -> float:
    """The cosine of any two rows: the median of pairs that stand at several distances from each other."""
    if len(unit) < 2:
        return 0.0
    shifts = {max(1, int(len(unit) * (place * GOLDEN % 1))) for place in range(1, SHIFTS + 1)}
    return float(np.median([np.einsum("ij,ij->i", unit, np.roll(unit, shift, axis=0)) for shift in shifts]))


def _sought(unit: Matrix, topics: Sequence[frozenset[str]], least: int, tightness: Tightness) -> list[Places]:
    """One pass: the clusters of each cell."""
    usual, weights = usual_cosine(unit), _weights(topics)
    from_cosine = min(tightness.cosine, usual + tightness.near * (1 - usual))
    found = []
    for cell in cells(unit):
        having = _having([topics[place] for place in cell.tolist()], weights)
        neighbours = _neighbours(unit[cell], having, from_cosine, tightness)
        found += [cell[cluster] for cluster in _by_most_neighbours(neighbours, least)]
    return found


def _neighbours(unit: Matrix, having: Matrix, from_cosine: float, tightness: Tightness) -> Matrix:
    """How near each two of a cell are, shape (rows, rows); 0 for two that are no neighbours."""
    has = (having > 0).astype(np.float32)
    weight = having.sum(axis=1)
    alike = 2 * (having @ has.T) >= tightness.shared * np.add.outer(weight, weight)
    cosines = unit @ unit.T
    near = alike & (has @ has.T >= tightness.stems) & (cosines >= from_cosine)
    np.fill_diagonal(near, val=False)
    return np.where(near, cosines, np.float32(0))


def _weights(topics: Sequence[frozenset[str]]) -> Mapping[str, float]:
    """How much each stem tells: ln(1 + N / n), an inverse document frequency that is not 0 for what all have."""
    counts = Counter(chain.from_iterable(topics))
    return {stem: log1p(len(topics) / count) for stem, count in counts.items()}


def _having(topics: Sequence[frozenset[str]], weights: Mapping[str, float]) -> Matrix:
    """The weight of each stem in each of these topics, shape (topics, stems); 0 where it is not there."""
    places = {stem: place for place, stem in enumerate(sorted(set(chain.from_iterable(topics))))}
    having = np.zeros((len(topics), max(1, len(places))), np.float32)
    for row, topic in enumerate(topics):
        for stem in topic:
            having[row, places[stem]] = weights[stem]
    return having


def _by_most_neighbours(near: Matrix, least: int) -> list[Places]:
    """Clusters of one cell, the medoid first and then its neighbours, the nearest first."""
    free = near > 0
    counts = free.sum(axis=1)
    found = []
    while len(counts) and counts.max() >= least - 1:
        medoid = int(counts.argmax())
        others = np.flatnonzero(free[medoid])
        others = others[np.argsort(-near[medoid, others], kind="stable")][: MOST - 1]
        members = np.concatenate([[medoid], others])
        found.append(members)
        free[members] = False
        free[:, members] = False
        counts = free.sum(axis=1)
    return found


def _of_length_one(vectors: Matrix) -> Matrix:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Matrix = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return unit
