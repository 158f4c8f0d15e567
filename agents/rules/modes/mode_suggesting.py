"""Suggest modes: clusters of conversation segments that fit no declared mode, with a name for each. Pure.

Enters: vectors of segments with a default mode, and vectors of turns with a chosen mode, by mode. Leaves: cohesive
clusters unlike every mode. Deterministic; very small clusters are no register, and very large ones are what the
default mode is for.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log
from typing import NamedTuple

import numpy as np

from agents.rules.clustering.knn import background_cosine
from agents.rules.text.tokenizer import content_terms
from schemas.models.vectors import Matrix, Vector


def cluster_by_average_linkage(unit: Matrix, min_cosine: float) -> list[list[int]]:
    """Merge groups until no two have a mean cosine of `min_cosine` or more."""
    cosines = (unit @ unit.T).astype(np.float64)
    np.fill_diagonal(cosines, -np.inf)
    groups = [[row] for row in range(len(unit))]
    while groups and cosines.max() >= min_cosine:
        one, other = divmod(int(cosines.argmax()), len(unit))
        size_one, size_other = len(groups[one]), len(groups[other])
        mean = (size_one * cosines[one] + size_other * cosines[other]) / (size_one + size_other)
        cosines[one], cosines[:, one] = mean, mean
        cosines[other], cosines[:, other], cosines[one, one] = -np.inf, -np.inf, -np.inf
        groups[one] += groups[other]
        groups[other] = []
    remaining = [sorted(group) for group in groups if group]
    return sorted(remaining, key=lambda group: (-len(group), group))


GROUP_COHESION = 0.25
"""A group's minimum mean cosine, as a fraction of the way from the background cosine to 1. Of eight conversations in
eight registers mixed into one (2,043 turns, MiniLM), 0.25 finds code, German, founding, research and a novel, each
nearly pure, and everyday life as one group; 0.15 merges two registers, 0.35 splits each into topics."""

MIN_GROUP_TURNS = 16
"""Turns: two segments. Fewer are not worth declaring a mode."""

MIN_GROUP_SHARE = 0.02
"""Share of all given turns: among years of memories a single evening is no register."""

MAX_GROUP_SHARE = 0.5
"""Share of all given turns: a larger group is what the default mode is for."""

MAX_GROUP_TERMS = 6
"""Keywords of a group."""

MAX_MODE_NAME_CHARS = 64
"""Characters of a mode's name (docs/contract.md)."""

STEM_CHARS = 5
"""Words with the same first letters count as one: "chapter" and "chapters"."""

_NAME = re.compile(r"[a-z][a-z0-9_-]*")


class SegmentGroup(NamedTuple):
    """Segments of one register by row number, nearest to the centroid first; `mode_cosines`: mean cosine by mode."""

    members: list[int]
    mode_cosines: Mapping[str, float]


def suggest_groups(unit: Matrix, turns: Sequence[int], modes: Mapping[str, Matrix]) -> list[SegmentGroup]:
    """Return the groups of segments that fit no mode, largest first.

    `unit` has a row of length 1 for each segment, `turns` its number of turns; `modes` has such rows for the segments
    of each chosen mode. All rows are of the same vector space.
    """
    if not len(unit):
        return []
    background = background_cosine(unit)
    min_cosine = background + GROUP_COHESION * (1 - background)
    found = []
    for members in cluster_by_average_linkage(unit, min_cosine):
        size = sum(turns[member] for member in members)
        if max(MIN_GROUP_TURNS, MIN_GROUP_SHARE * sum(turns)) <= size <= MAX_GROUP_SHARE * sum(turns):
            group = unit[members]
            mode_cosines = {name: mean_cosine(group, rows) for name, rows in modes.items()}
            # Above this cosine the group and the mode's segments would have been clustered together.
            if max(mode_cosines.values(), default=-1.0) < min_cosine:
                nearest_first = [members[row] for row in np.argsort(-(group @ centroid(group)), kind="stable")]
                found.append(SegmentGroup(nearest_first, mode_cosines))
    return sorted(found, key=lambda group: -sum(turns[member] for member in group.members))


def mean_cosine(group: Matrix, mode: Matrix) -> float:
    """Return the mean cosine over all pairs of rows; 0 if the mode has no rows."""
    return float(group.mean(axis=0) @ mode.mean(axis=0)) if len(mode) else 0.0


def centroid(rows: Matrix) -> Vector:
    """Return the mean direction of the rows, of length 1."""
    mean = rows.mean(axis=0)
    length = float(np.linalg.norm(mean))
    direction: Vector = (mean / length if length else mean).astype(np.float32)
    return direction


def top_keywords(texts: Iterable[str], everything: Iterable[str], names: Collection[str] = ()) -> list[str]:
    """Return the words that distinguish `texts` from `everything`, best first, without `names` and numbers.

    A word's weight is its contribution to the divergence of the two document-frequency distributions (Tomokiyo and
    Hurst, "A Language Model Approach to Keyphrase Extraction", 2003).
    """
    group, corpus = _document_frequencies(texts), _document_frequencies(everything)
    weights = {
        word: number * log(number / group.size * corpus.size / corpus.counts[word])
        for word, number in group.counts.items()
        if len(word) > 2 and not word.isdigit() and word not in names
    }
    more_frequent = [word for word, weight in weights.items() if weight > 0]
    return sorted(more_frequent, key=lambda word: (-weights[word], word))[:MAX_GROUP_TERMS]


class _DocumentFrequencies(NamedTuple):
    """For each word the number of texts that contain it, and the number of texts."""

    counts: Counter[str]
    size: int


def _document_frequencies(texts: Iterable[str]) -> _DocumentFrequencies:
    terms = [set(content_terms(text)) for text in texts]
    return _DocumentFrequencies(Counter(word for words in terms for word in words), len(terms))


def suggest_mode_name(terms: Iterable[str], taken: Collection[str]) -> str:
    """Join the two best keywords that are valid in a name and have different stems; number the name if it is taken."""
    words = list({word[:STEM_CHARS]: word for word in reversed([*terms]) if _NAME.fullmatch(word)}.values())[::-1][:2]
    name = ("-".join(words) or "mode")[: MAX_MODE_NAME_CHARS - 4]
    return next(one for one in (name, *(f"{name}-{number}" for number in range(2, 1000))) if one not in taken)
