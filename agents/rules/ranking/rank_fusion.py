"""Several vector spaces in one order, without comparing a cosine of one with a cosine of another. Pure.

Words, entities, neighbours, recency, importance and speakers mean the same in every space, so they are counted as in
a search of one. What a model sees is told by ranks: a memory's rank within its own space becomes a normal score, the
number of standard deviations that a memory of this rank lies above the mean, if distances are spread normally. The
first of a thousand so counts more than the first of ten, whatever a model calls near.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np

from agents.rules.index.columns import FloatArray, Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.query.vector_lanes import ModeSearch
from agents.rules.ranking.ranking import SCORE_DECIMALS
from schemas.retrieval import Strategy
from schemas.vectors import Scored

DENSE_STD = 0.1
"""What one standard deviation counts as, beside cosines: about the spread of one question's cosines (0.09 on our
chats), so that the ranking weights mean what they mean in one space. From 0.08 to 0.12 nothing is lost there."""

MAXSIM_STD = 0.07
"""The same for late interaction."""

DENSE_MEAN, MAXSIM_MEAN = 0.2, 0.45
"""The mean of one question's cosines, and of its late interactions, on our chats: what a memory at the mean of its own
space is counted as."""

MAX_TOPIC_CANDIDATES = 100
"""Best memories by the other signals whose topics are read: a topic is a tiebreaker, and lies in the record."""

LaneStatus = Literal["empty", "waiting", "blind", "seen"]
"""What there is to be seen in a lane: no memory; memories but no vectors; vectors that can't be asked; vectors."""

FusionMethod = Literal["weighted_mean", "rank_fusion", "lexical_merge"]
"""How an order was made: from the cosines of one lane, from ranks of several, or without any vectors of several."""

SCORE_EPSILON = 1e-9
"""Keeps a division by a greatest score sane where no memory has any."""

_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class LaneResult:
    """What a lane's vectors say: the nearest, best first, in the space with this digest; else why nothing.

    `count` is the number of memories with a vector that the read may see. `maxsim` are the best by late interaction,
    in a space that keeps token vectors.
    """

    lane: ModeSearch
    status: LaneStatus
    space: str = ""
    count: int = 0
    found: Sequence[Scored] = ()
    maxsim: Sequence[Scored] = ()
    missing: str | None = None


class ScoreKind(NamedTuple):
    """A kind of nearness: what a lane found by it, the mean of one question's values on our chats, their deviation."""

    select: Callable[[LaneResult], Sequence[Scored]]
    mean: float
    std: float


DENSE_KIND = ScoreKind(lambda one: one.found, DENSE_MEAN, DENSE_STD)
MAXSIM_KIND = ScoreKind(lambda one: one.maxsim, MAXSIM_MEAN, MAXSIM_STD)


def choose_fusion_method(sights: Sequence[LaneStatus]) -> FusionMethod:
    """How lanes of which this is to be seen become one order.

    One lane with vectors that can't be asked makes the others do without theirs: its memories would stand behind
    whatever the other models call near.
    """
    if len(sights) == 1:
        return "weighted_mean"
    return "lexical_merge" if "blind" in sights or ("waiting" in sights and "seen" not in sights) else "rank_fusion"


def strategy_of(sights: Sequence[LaneStatus]) -> Strategy:
    """What the answer calls the search."""
    if len(sights) > 1:
        return "cross_mode"
    return "lexical" if sights[0] in ("waiting", "blind") else "hybrid"


@dataclass(frozen=True, slots=True)
class VectorScores:
    """How near each memory is to the question by vectors, by number; None where nothing can be told by them.

    What is not `embedded` has no vector that can be asked: what stands for it is supposed.
    """

    embedded: Mask
    dense: FloatArray | None = None
    maxsim: FloatArray | None = None


def fuse_vector_scores(
    nearest: Sequence[LaneResult],
    method: FusionMethod,
    roster: MemoryColumns,
    admitted: Mask,
    lexical_scores: FloatArray,
) -> VectorScores:
    """How near each memory is; a vector that is not that of today's text counts for nothing.

    `lexical_scores` is how well the words of each memory match. A memory that has no vector yet counts as near as its words
    tell, the best match by words as the nearest of all: a turn that was written a moment ago would otherwise stand
    behind all that are merely alike.
    """
    asked = [one for one in nearest if one.status == "seen"]
    if method == "lexical_merge" or not asked:
        return VectorScores(np.zeros(len(admitted), np.bool_))
    ready = np.zeros(len(admitted), np.bool_)
    for one in asked:
        ready |= roster.embedded(one.space)
    likely = lexical_scores / max(float(lexical_scores[admitted].max(initial=0.0)), SCORE_EPSILON)

    def near(kind: ScoreKind) -> FloatArray:
        return _supposed(np.where(ready, _near(kind, asked, method, roster, admitted), np.nan), likely)

    return VectorScores(ready, near(DENSE_KIND), near(MAXSIM_KIND) if any(one.maxsim for one in asked) else None)


def _near(
    kind: ScoreKind, asked: Sequence[LaneResult], method: FusionMethod, roster: MemoryColumns, admitted: Mask
) -> FloatArray:
    """How near each memory is, by one kind of nearness; of a space without token vectors, as its cosines rank."""
    if method == "weighted_mean":
        return scatter_scores(kind.select(asked[0]), roster)
    ranks = [_ranked(kind.select(one) or one.found, one, roster, admitted) for one in asked]
    best: FloatArray = np.maximum.reduce([scatter_scores(one, roster, nothing=0.0) for one in ranks])
    return kind.mean + best * (kind.std / DENSE_STD)


def scatter_scores(found: Sequence[Scored], roster: MemoryColumns, nothing: float | None = None) -> FloatArray:
    """Scores by number; what was not found counts `nothing`, or as the last that was."""
    numbers = roster.number_of
    size = len(roster.columns.live)
    scores = [one.score for one in found]
    placed_ = np.full(size + 1, min(scores, default=0.0) if nothing is None else nothing)
    placed_[[numbers.get(one.memory_id, size) for one in found]] = scores
    return placed_[:size]


def _supposed(values: FloatArray, likely: FloatArray) -> FloatArray:
    """Values with those that are not known put between the least and the greatest, as `likely` in 0..1 tells."""
    least, greatest = np.nanmin(values, initial=np.inf), np.nanmax(values, initial=-np.inf)
    if least > greatest:
        return np.zeros(len(values))
    return np.where(np.isnan(values), least + np.clip(likely, 0.0, 1.0) * (greatest - least), values)


def normal_scores(found: Sequence[Scored], count: int) -> list[Scored]:
    """Ranks within one space as likenesses within 0..1, in place of the cosines.

    `found` are the nearest of `count` memories, best first. Equal cosines share a rank. The score of rank r of n is
    the normal quantile of 1 - (r - 3/8) / (n + 1/4): Blom, "Statistical Estimates and Transformed Beta-Variables"
    (1958). Those below the mean score 0.
    """
    whole = max(count, len(found)) + 0.25
    scores = [DENSE_STD * _NORMAL.inv_cdf(1 - (rank - 0.375) / whole) for rank in _ranks(found)]
    return [Scored(one.memory_id, min(max(score, 0.0), 1.0)) for one, score in zip(found, scores, strict=True)]


def topic_share(question: Sequence[str], topic: Sequence[str]) -> float:
    """The share of a topic's terms that a question names, 0 where there is no topic."""
    return len(set(question).intersection(topic)) / len(set(topic)) if topic else 0.0


def _ranked(found: Sequence[Scored], nearest: LaneResult, roster: MemoryColumns, admitted: Mask) -> list[Scored]:
    """Normal scores in place of the cosines, among those of the memories found that are still there to be shown."""
    numbers, shown = roster.number_of, admitted & roster.embedded(nearest.space)
    there = [one for one in found if one.memory_id in numbers and shown[numbers[one.memory_id]]]
    return normal_scores(there, nearest.count)


def _ranks(found: Sequence[Scored]) -> list[float]:
    """Ranks from 1, the mean of their places for equal cosines."""
    falling = -np.round([one.score for one in found], SCORE_DECIMALS)
    _, group, sizes = np.unique(falling, return_inverse=True, return_counts=True)
    middles = np.cumsum(sizes) - (sizes - 1) / 2
    ranks: list[float] = middles[group].tolist()
    return ranks
