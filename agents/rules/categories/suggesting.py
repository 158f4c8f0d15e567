"""Suggest categories from uncategorised items, and merges and splits of existing ones. Pure; deterministic.

All of it is one question: which items would average linkage put together? Of 14 invented categories of eight sentences
(`tests/builders/categories.py`, MiniLM), 12 whose halves are two categories are merged, and none of the 91 pairs of
different ones; of these pairs under one name 78 are split rightly and 2 wrongly, and one of the single ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from agents.rules.clustering.clustering import background_cosine, cluster_by_average_linkage
from schemas.models.vectors import Matrix

COHESION = 0.08
"""A group's minimum mean cosine, as a fraction of the way from the background cosine to 1. Single sentences are further
apart than the segments of a conversation, from which modes are suggested."""

MIN_GROUP_ITEMS = 4
"""Items of a suggested category, and of a category that is compared: fewer have no common topic yet."""

MIN_SPLIT_SHARE = 0.7
"""Share of a category's items that must be in the groups that it would be split into."""

MAX_CLUSTERED = 600
"""Items that are clustered, evenly over those given: a fifth of a second."""

Rows = Sequence[int]
"""Row numbers of a matrix of items."""


class CategoryGroups(NamedTuple):
    """Groups of items in no category, pairs of categories that are one topic, and categories of several topics."""

    found: list[list[int]]
    merges: list[tuple[str, str]]
    splits: dict[str, list[list[int]]]


def group_items(unit: Matrix, filed: Mapping[str, Rows], unfiled: Rows) -> CategoryGroups:
    """Return the groups among the items of one mode; `unit` has a row of length 1 for each.

    `filed` are the items of each category that is mostly in this mode, `unfiled` those in none.
    """
    background = background_cosine(unit)
    min_cosine = background + COHESION * (1 - background)
    compared = {name: rows for name, rows in filed.items() if len(rows) >= MIN_GROUP_ITEMS}
    return CategoryGroups(
        _groups(unit, unfiled, min_cosine),
        list(_merges(unit, compared, min_cosine)),
        dict(_splits(unit, compared, min_cosine)),
    )


def _groups(unit: Matrix, rows: Rows, min_cosine: float) -> list[list[int]]:
    """Return groups of these rows, the largest first, the most typical member of each first."""
    sample = np.array(rows, np.int64)[:: max(1, -(-len(rows) // MAX_CLUSTERED))]
    groups = []
    for members in cluster_by_average_linkage(unit[sample], min_cosine):
        if len(members) >= MIN_GROUP_ITEMS:
            group = sample[members]
            typical_first = np.argsort(-(unit[group] @ unit[group].mean(axis=0)), kind="stable")
            groups.append(group[typical_first].tolist())
    return groups


def _merges(unit: Matrix, filed: Mapping[str, Rows], min_cosine: float) -> Iterator[tuple[str, str]]:
    """Yield the pairs, the larger one first. Categories that are equal in size come in the order of their names."""
    # The product of two means is the mean cosine over all pairs of their rows.
    means = {name: unit[list(rows)].mean(axis=0) for name, rows in filed.items()}
    for larger, smaller in combinations(sorted(filed, key=lambda name: (-len(filed[name]), name)), 2):
        if float(means[larger] @ means[smaller]) >= min_cosine:
            yield larger, smaller


def _splits(unit: Matrix, filed: Mapping[str, Rows], min_cosine: float) -> Iterator[tuple[str, list[list[int]]]]:
    for name in sorted(filed):
        rows = filed[name]
        groups = _groups(unit, rows, min_cosine)
        clustered = min(len(rows), MAX_CLUSTERED)
        if len(groups) > 1 and sum(map(len, groups)) >= MIN_SPLIT_SHARE * clustered:
            yield name, groups
