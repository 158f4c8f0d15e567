"""The order that a cross-encoder gives to the best hits: what it reads of each, and the score that follows. Pure.

Enters: hits, with the log-odds that the cross-encoder gives them. Leaves: the same hits in another order. Guaranteed:
no hit is added or lost; those that were not read keep their scores and follow in the order that they had.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from modestream_client.hits import Hit

from agents.rules.ranking.ranking import SCORE_DECIMALS, log_odds_of

MAX_READ_HITS = 30
"""Hits that are read: a passage takes some 10 ms of a core."""

MAX_READ_CHARS = 480
"""Characters of a text without passages: as long as a text that is not cut."""

READ_WEIGHT, READ_ZERO = 0.15, -8.6
"""The log-odds of a hit change by `READ_WEIGHT` x (the cross-encoder's - `READ_ZERO`).

The weight has the least listwise loss on our conversations, with log-odds of the search by weights fitted without them;
the zero leaves the mean score of 30 hits at the share of them that are evidence. Figures: docs/reference.md.
"""

CONTRIBUTION = "its reading with the question"
"""The name of the change among a hit's contributions."""

READER_NAME = "local"
"""The value of a request's `rerank`, and what `reranked_by` says."""


def text_to_read(hit: Hit) -> str:
    """Return a speaker with the best passage, of a text without passages with its first characters."""
    start, end = (hit.passages[0].start, hit.passages[0].end) if hit.passages else (0, MAX_READ_CHARS)
    said = hit.text[start:end]
    return f"{hit.speaker}: {said}" if hit.speaker else said


@dataclass(frozen=True, slots=True)
class ReadHits:
    """What the cross-encoder says of hits, by memory id. Implements `agents.rules.answer.reranking.HitOrder`."""

    log_odds: Mapping[str, float]
    profile: str = READER_NAME

    def arranged(self, hits: Sequence[Hit]) -> list[Hit]:
        """Return hits by the sum of both log-odds, ties in their order; hits that were not read follow in theirs."""
        changes = {
            hit.memory_id: READ_WEIGHT * (self.log_odds[hit.memory_id] - READ_ZERO)
            for hit in hits
            if hit.memory_id in self.log_odds
        }
        read = [hit for hit in hits if hit.memory_id in changes]
        read.sort(key=lambda hit: -(log_odds_of(hit.score) + changes[hit.memory_id]))
        others = [hit for hit in hits if hit.memory_id not in changes]
        return [*(_changed(hit, changes[hit.memory_id]) for hit in read), *others]

    def reasons_of(self, hits: Sequence[Hit]) -> dict[str, str]:  # noqa: ARG002 - as a language model's order
        """Return none: it gives numbers only."""
        return {}


def _changed(hit: Hit, change: float) -> Hit:
    # The logistic function, which overflows if written with `exp`.
    score = round(0.5 + 0.5 * math.tanh((log_odds_of(hit.score) + change) / 2), SCORE_DECIMALS)
    contributions = hit.contributions
    if contributions is not None:
        by_name = {**contributions, CONTRIBUTION: round(change, SCORE_DECIMALS)}
        contributions = dict(sorted(by_name.items(), key=lambda item: -abs(item[1])))
    return hit.model_copy(update={"score": score, "contributions": contributions})
