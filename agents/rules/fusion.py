"""Several vector spaces in one order, without comparing a cosine of one with a cosine of another. Pure.

Words, entities, neighbours, recency, importance and speakers mean the same in every space, so they are counted as in
a search of one. What a model sees is told by ranks: a memory's rank within its own space becomes a normal score, the
number of standard deviations that a memory of this rank lies above the mean, if distances are spread normally. The
first of a thousand so counts more than the first of ten, whatever a model calls near.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from agents.rules.columns import Floats, Mask
from agents.rules.lanes import Lane
from agents.rules.ranking import DIGITS, placed
from agents.rules.roster import Roster
from schemas.retrieval import Strategy
from schemas.vectors import Scored

DEVIATION = 0.1
"""What one standard deviation counts as, beside cosines: about the spread of one question's cosines (0.09 on our
chats), so that the ranking weights mean what they mean in one space. From 0.08 to 0.12 nothing is lost there."""

TOPIC_WEIGHT = 0.05
"""How much a matching topic counts beside the ranking weights, where no model's sight does: less than the speaker.
No labelled conversations with topics exist to measure it on."""

TOPIC_CANDIDATES = 100
"""Best memories by the other signals whose topics are read: a topic is a tiebreaker, and lies in the record."""

Sight = Literal["empty", "waiting", "blind", "seen"]
"""What there is to be seen in a lane: no memory; memories but no vectors; vectors that can't be asked; vectors."""

Method = Literal["weighted_mean", "rank_fusion", "lexical_merge"]
"""How an order was made: from the cosines of one lane, from ranks of several, or without any vectors of several."""

_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Nearest:
    """What a lane's vectors say: the nearest, best first, in the space with this digest; else why nothing.

    `count` is the number of memories with a vector that the read may see.
    """

    lane: Lane
    sight: Sight
    space: str = ""
    count: int = 0
    found: Sequence[Scored] = ()
    missing: str | None = None


def method_of(sights: Sequence[Sight]) -> Method:
    """How lanes of which this is to be seen become one order.

    One lane with vectors that can't be asked makes the others do without theirs: its memories would stand behind
    whatever the other models call near.
    """
    if len(sights) == 1:
        return "weighted_mean"
    return "lexical_merge" if "blind" in sights or ("waiting" in sights and "seen" not in sights) else "rank_fusion"


def strategy_of(sights: Sequence[Sight]) -> Strategy:
    """What the answer calls the search."""
    if len(sights) > 1:
        return "cross_mode"
    return "lexical" if sights[0] in ("waiting", "blind") else "hybrid"


def seen(nearest: Sequence[Nearest], method: Method, roster: Roster, admitted: Mask) -> tuple[Floats, Mask]:
    """How near each memory is to the question, in 0..1, and of which memories the models can tell; by number.

    A vector that is not that of today's text counts for nothing.
    """
    dense, ready = np.zeros(len(admitted)), np.zeros(len(admitted), np.bool_)
    for one in nearest if method != "lexical_merge" else ():
        if one.sight == "seen":
            there = roster.embedded(one.space)
            found = one.found if method == "weighted_mean" else _ranked(one, roster, admitted & there)
            dense = np.maximum(dense, placed(found, roster.number_of, there))
            ready |= there
    return dense, ready


def normal_scores(found: Sequence[Scored], count: int) -> list[Scored]:
    """Ranks within one space as likenesses within 0..1, in place of the cosines.

    `found` are the nearest of `count` memories, best first. Equal cosines share a rank. The score of rank r of n is
    the normal quantile of 1 - (r - 3/8) / (n + 1/4): Blom, "Statistical Estimates and Transformed Beta-Variables"
    (1958). Those below the mean score 0.
    """
    whole = max(count, len(found)) + 0.25
    scores = [DEVIATION * _NORMAL.inv_cdf(1 - (rank - 0.375) / whole) for rank in _ranks(found)]
    return [Scored(one.memory_id, min(max(score, 0.0), 1.0)) for one, score in zip(found, scores, strict=True)]


def topic_share(question: Sequence[str], topic: Sequence[str]) -> float:
    """The share of a topic's terms that a question names, 0 where there is no topic."""
    return len(set(question).intersection(topic)) / len(set(topic)) if topic else 0.0


def with_topics(scores: Floats, topics: Floats, total: float) -> Floats:
    """Scores with the topic as one more signal; `total` is the sum of the weights that made them. Same shapes."""
    return np.round((total * scores + TOPIC_WEIGHT * topics) / (total + TOPIC_WEIGHT), DIGITS)


def _ranked(nearest: Nearest, roster: Roster, shown: Mask) -> list[Scored]:
    """Normal scores in place of the cosines, among those of the memories found that are still there to be shown."""
    numbers = roster.number_of
    found = [one for one in nearest.found if one.memory_id in numbers and shown[numbers[one.memory_id]]]
    return normal_scores(found, nearest.count)


def _ranks(found: Sequence[Scored]) -> list[float]:
    """Ranks from 1, the mean of their places for equal cosines."""
    falling = -np.round([one.cosine for one in found], DIGITS)
    _, group, sizes = np.unique(falling, return_inverse=True, return_counts=True)
    middles = np.cumsum(sizes) - (sizes - 1) / 2
    ranks: list[float] = middles[group].tolist()
    return ranks
