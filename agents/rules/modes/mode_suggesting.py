"""Registers that nobody declared: groups of stretches that no mode is for, and what they might be called. Pure.

Enters: the vectors of stretches whose mode nobody chose, and those of what was put into each declared mode. Leaves:
groups that are about one thing and unlike every mode. Guaranteed: the same input, the same suggestions; nothing is
suggested for a few turns, nor for the bulk of what is said, which is what the default mode is there for.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log
from typing import NamedTuple

import numpy as np

from agents.rules.clustering.average_linkage import cluster_by_average_linkage
from agents.rules.clustering.knn import background_cosine
from agents.rules.text.tokenizer import content_terms
from schemas.vectors import Matrix, Vector

GROUP_COHESION = 0.25
"""How far on the way from the cosine of any two stretches to 1 the mean of a group must be. Of eight conversations of
eight registers mixed into one (2,043 turns, MiniLM) that finds code, German, founding, research and a novel, each
nearly pure, and everyday life as one; at 0.15 two registers fall together, at 0.35 each falls apart into topics."""

MIN_GROUP_TURNS = 16
"""Turns of a group: two stretches. A mode for less is not worth its declaration."""

MIN_GROUP_SHARE = 0.02
"""Of all turns that are looked at, as a share: a user with years of memories is not told of a single evening."""

MAX_GROUP_SHARE = 0.5
"""The share of all turns above which a group is what the default mode is for."""

MAX_GROUP_TERMS = 6
"""Telling words that are shown of a group."""

MAX_MODE_NAME_CHARS = 64
"""Characters of a mode's name (CONTRACT §6)."""

STEM_CHARS = 5
"""Letters that two words share which say the same: a chapter and chapters."""

_NAME = re.compile(r"[a-z][a-z0-9_-]*")


class SegmentGroup(NamedTuple):
    """Stretches of one register by their places, those nearest to their centroid first; `mode_cosines` to each mode."""

    members: list[int]
    mode_cosines: Mapping[str, float]


def suggest_groups(unit: Matrix, turns: Sequence[int], modes: Mapping[str, Matrix]) -> list[SegmentGroup]:
    """The groups of these stretches that fit no mode, the largest first.

    `unit` has a row of length 1 for each stretch, `turns` says how many turns it has; `modes` has such rows of what was
    put into each declared mode, all in the same space.
    """
    if not len(unit):
        return []
    usual = background_cosine(unit)
    near = usual + GROUP_COHESION * (1 - usual)
    found = []
    for members in cluster_by_average_linkage(unit, near):
        size = sum(turns[member] for member in members)
        if max(MIN_GROUP_TURNS, MIN_GROUP_SHARE * sum(turns)) <= size <= MAX_GROUP_SHARE * sum(turns):
            group = unit[members]
            likeness = {name: mean_cosine(group, rows) for name, rows in modes.items()}
            # With a mode that it is so like it would have been one group, had nobody chosen.
            if max(likeness.values(), default=-1.0) < near:
                nearest_first = [members[place] for place in np.argsort(-(group @ centroid(group)), kind="stable")]
                found.append(SegmentGroup(nearest_first, likeness))
    return sorted(found, key=lambda group: -sum(turns[member] for member in group.members))


def mean_cosine(group: Matrix, mode: Matrix) -> float:
    """The mean cosine of a row of one with a row of the other; 0 where a mode has none."""
    return float(group.mean(axis=0) @ mode.mean(axis=0)) if len(mode) else 0.0


def centroid(rows: Matrix) -> Vector:
    """The mean direction of rows, of length 1."""
    mean = rows.mean(axis=0)
    length = float(np.linalg.norm(mean))
    middle: Vector = (mean / length if length else mean).astype(np.float32)
    return middle


def top_keywords(texts: Iterable[str], everything: Iterable[str], names: Collection[str] = ()) -> list[str]:
    """The words that tell these texts from all of them, the best first; never the names of speakers, nor numbers.

    A word weighs what it adds to the divergence of the texts from all (Tomokiyo and Hurst, "A Language Model Approach
    to Keyphrase Extraction", 2003), by the shares of texts that have it.
    """
    here, there = _counted(texts), _counted(everything)
    weights = {
        word: number * log(number / here.size * there.size / there.counts[word])
        for word, number in here.counts.items()
        if len(word) > 2 and not word.isdigit() and word not in names
    }
    more_often = [word for word, weight in weights.items() if weight > 0]
    return sorted(more_often, key=lambda word: (-weights[word], word))[:MAX_GROUP_TERMS]


class _Counted(NamedTuple):
    """How many of so many texts have a word."""

    counts: Counter[str]
    size: int


def _counted(texts: Iterable[str]) -> _Counted:
    each = [set(content_terms(text)) for text in texts]
    return _Counted(Counter(word for words in each for word in words), len(each))


def suggest_mode_name(terms: Iterable[str], taken: Collection[str]) -> str:
    """A name that a mode may have, of the two most telling words that fit and say two things; none that is taken."""
    words = list({word[:STEM_CHARS]: word for word in reversed([*terms]) if _NAME.fullmatch(word)}.values())[::-1][:2]
    name = ("-".join(words) or "mode")[: MAX_MODE_NAME_CHARS - 4]
    return next(one for one in (name, *(f"{name}-{number}" for number in range(2, 1000))) if one not in taken)
