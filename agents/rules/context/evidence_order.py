"""Order the hits of a query as evidence of a context: what a token of them is worth. Pure.

A hit's score is the probability that it answers. A hit beside a better one in its conversation counts more: questions
and answers are adjacent. A short hit comes before a long one of about the same worth. Of the evidence of our thirteen
conversations, contexts of 1,000 / 2,000 tokens hold 90.3 / 94.6 %; in order of the score 90.2 / 94.4 %. On five
conversations of LoCoMo, on which nothing was fitted, 88.9 / 93.3 % and 88.8 / 92.6 %.
"""

import math
from collections.abc import Mapping

import numpy as np

from agents.rules.index.columns import MISSING
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.ranking.ranking import log_odds_of

NEIGHBOUR_WEIGHT = 0.3
"""Share of the way to a better neighbour's log-odds."""

LENGTH_EXPONENT = 0.25
"""Exponent of the tokens by which a probability is divided; 1 would be worth per token, and prefers mere courtesies."""

ENTRY_TOKENS, TOKENS_PER_TERM = 15.0, 1.3
"""Estimated tokens of an entry: around its text, and for each term of it."""


def order_evidence(scores: Mapping[int, float], columns: MemoryColumns) -> list[int]:
    """Return the numbers of the hits, most valuable first; `scores` are probabilities by number, best first."""
    if not scores:
        return []
    numbers = np.fromiter(scores, dtype=np.int64)
    log_odds = {number: log_odds_of(score) for number, score in scores.items()}
    order = columns.order()
    own = np.array(list(log_odds.values()))
    near = np.array([_best(log_odds, order.before[number], order.after[number]) for number in numbers.tolist()])
    raised = own + NEIGHBOUR_WEIGHT * np.maximum(near - own, 0.0)
    tokens = ENTRY_TOKENS + TOKENS_PER_TERM * columns.columns.lengths[numbers]
    worth = -np.logaddexp(0.0, -raised) - LENGTH_EXPONENT * np.log(tokens)
    found: list[int] = numbers[np.argsort(-worth, kind="stable")].tolist()
    return found


def _best(log_odds: Mapping[int, float], before: int, after: int) -> float:
    """Return the better log-odds of two neighbours; minus infinity if neither is a hit."""
    return max(log_odds.get(int(one), -math.inf) if one != MISSING else -math.inf for one in (before, after))
