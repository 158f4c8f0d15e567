"""Which memories of a cell are neighbours: near by their vectors, and about the same by their words. Pure."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import log1p
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.rules.clustering.kmeans_cells import RowIndices
from agents.rules.text.courtesy_words import courtesy_stems
from agents.rules.text.languages import detect_language
from agents.rules.text.stemming import stems
from agents.rules.text.tokenizer import content_terms, tokenize
from schemas.vectors import Matrix, Vector

MAX_NEIGHBOURS = 100
"""Neighbours of one memory that are kept, the nearest: a cluster has no more."""

GOLDEN, SHIFTS = (5**0.5 - 1) / 2, 12
"""Multiples of the golden section are spread evenly, and have no period in common with what people do every week."""


@dataclass(frozen=True, slots=True)
class NeighbourThresholds:
    """When two memories are neighbours.

    `near`: how far on the way from the cosine of any two memories here to 1 theirs must be. It depends on the embedder
    what cosine unrelated texts have: 0.1 with MiniLM, 0.75 with e5. `cosine`: what is near in any case, for where all
    memories are of one topic. `shared`: Dice coefficient of their stems, each weighted by how rare it is here. `stems`:
    how many they share at least; `content_stems`: how many of these are no kind words (`agents.rules.text.courtesy_words`).
    """

    near: float
    cosine: float
    shared: float
    stems: int
    content_stems: int

    def min_cosine(self, usual: float) -> float:
        """The cosine from which two are near where this one is usual."""
        return min(self.cosine, usual + self.near * (1 - usual))


class NeighbourPairs(NamedTuple):
    """Neighbours: the place of one, that of the other, and their cosine.

    A pair stands there both ways, unless one of them has too many others that are nearer.
    """

    one: RowIndices
    other: RowIndices
    cosine: Vector


def topic_stems(text: str, names: Collection[str] = ()) -> frozenset[str]:
    """The telling stems of a text, but for the names of those who speak here: they are addressed whatever the topic."""
    telling = [term for term in content_terms(text) if term not in names]
    return frozenset(stems(telling, detect_language(tokenize(text))))


def background_cosine(unit: Matrix) -> float:
    """The cosine of any two rows: the median of pairs that stand at several distances from each other."""
    if len(unit) < 2:
        return 0.0
    shifts = {max(1, int(len(unit) * (place * GOLDEN % 1))) for place in range(1, SHIFTS + 1)}
    return float(np.median([np.einsum("ij,ij->i", unit, np.roll(unit, shift, axis=0)) for shift in shifts]))


def idf_weights(topics: Sequence[frozenset[str]]) -> Mapping[str, float]:
    """How much each stem tells: ln(1 + N / n), an inverse document frequency that is not 0 for what all have."""
    counts = Counter(chain.from_iterable(topics))
    return {stem: log1p(len(topics) / count) for stem, count in counts.items()}


def find_neighbours(
    unit: Matrix,
    topics: Sequence[frozenset[str]],
    weights: Mapping[str, float],
    from_cosine: float,
    tightness: NeighbourThresholds,
) -> NeighbourPairs:
    """The neighbours among the memories of a cell, whose vectors are rows of `unit`."""
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -1)
    near = cosines >= from_cosine
    # Most have nobody near: their words need not be looked at.
    rows = np.flatnonzero(near.any(axis=1))
    alike = _alike([topics[row] for row in rows.tolist()], weights, tightness) & near[np.ix_(rows, rows)]
    one, other = np.nonzero(_nearest(np.where(alike, cosines[np.ix_(rows, rows)], np.float32(-1))))
    return NeighbourPairs(rows[one], rows[other], cosines[rows[one], rows[other]])


def _alike(
    topics: Sequence[frozenset[str]], weights: Mapping[str, float], tightness: NeighbourThresholds
) -> NDArray[np.bool_]:
    """Which of these topics are alike, shape (topics, topics)."""
    counts = Counter(chain.from_iterable(topics))
    places = {stem: place for place, stem in enumerate(sorted(one for one, count in counts.items() if count > 1))}
    has = np.zeros((len(topics), max(1, len(places))), np.float32)
    for row, topic in enumerate(topics):
        has[row, [places[stem] for stem in topic if stem in places]] = 1
    weight = np.array([weights[stem] for stem in places] or [0.0], np.float32)
    whole = np.array([sum(weights[stem] for stem in topic) for topic in topics], np.float32)
    alike: NDArray[np.bool_] = 2 * ((has * weight) @ has.T) >= tightness.shared * np.add.outer(whole, whole)
    enough: NDArray[np.bool_] = has @ has.T >= tightness.stems
    says = has[:, [place for stem, place in places.items() if stem not in courtesy_stems()]]
    tells: NDArray[np.bool_] = says @ says.T >= tightness.content_stems
    return alike & enough & tells


def _nearest(cosines: Matrix) -> NDArray[np.bool_]:
    """Which are among the `MAX_NEIGHBOURS` nearest of each row; -1 is nobody."""
    wanted: NDArray[np.bool_] = cosines > -1
    if len(cosines) > MAX_NEIGHBOURS:
        least = np.partition(cosines, -MAX_NEIGHBOURS, axis=1)[:, [-MAX_NEIGHBOURS]]
        wanted = wanted & (cosines >= least)
    return wanted
