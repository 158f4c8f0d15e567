"""Rerank the best hits by a language model or by a cross-encoder. Pure.

No hit is added or lost. Hits missing in a language model's answer, and those that a cross-encoder did not read, follow
in their former order; the latter keep their scores. An answer may contain anything.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from modestream_client.hits import Hit, Passage
from pydantic import BaseModel, Field

from agents.rules.prompts.prompting import Template, clip_text, fill_prompt
from agents.rules.ranking.ranking import SCORE_DECIMALS, log_odds_of
from schemas.messages.retrieval import RetrieveRequest, RetrieveResult
from schemas.models.language import Prompt

MAX_SHOWN_CHARS = 600
"""Characters of each memory in the prompt: about 150 tokens."""

MAX_QUESTION_CHARS = 2000
"""Characters of the question in the prompt."""

MAX_REASON_CHARS = 200


class RankedCandidate(BaseModel, frozen=True, extra="ignore"):
    """A memory by its number in the prompt, and why it is there."""

    number: int
    reason: str = ""


class RerankAnswer(BaseModel, frozen=True, extra="ignore"):
    """A model's order of memories, the most helpful first."""

    order: list[RankedCandidate] = Field(max_length=1000)


class HitOrder(Protocol):
    @property
    def profile(self) -> str:
        """The name of the model that gave it."""

    def arranged(self, hits: Sequence[Hit]) -> list[Hit]:
        """Return the same hits in this order; hits that the model did not read are among them."""

    def reasons_of(self, hits: Sequence[Hit]) -> dict[str, str]:
        """Return the model's reasons for these hits, by memory id."""


class RankedHits(NamedTuple):
    """Memory ids, the most helpful first; reasons by memory id; the profile of the model."""

    order: Sequence[str]
    reasons: Mapping[str, str]
    profile: str

    def arranged(self, hits: Sequence[Hit]) -> list[Hit]:
        """Return hits in this order; hits not in it follow in their own, and private hits keep their ranks."""
        position = {memory_id: number for number, memory_id in enumerate(self.order)}
        shown = [hit for hit in hits if not hit.private]
        ranked = iter(sorted(shown, key=lambda hit: position.get(hit.memory_id, len(position))))
        return [hit if hit.private else next(ranked) for hit in hits]

    def reasons_of(self, hits: Sequence[Hit]) -> dict[str, str]:
        """Return the reasons of these hits, in their order."""
        return {hit.memory_id: self.reasons[hit.memory_id] for hit in hits if self.reasons.get(hit.memory_id)}


def build_rerank_prompt(template: Template, question: str, hits: Sequence[Hit]) -> Prompt:
    """Build the prompt that asks for the order of these hits, numbered from 1. Raises ValueError as `fill_prompt`."""
    lines: list[str] = []
    for number, hit in enumerate(hits, 1):
        about = {"when": hit.occurred_at, "who": hit.speaker or hit.role}
        stated = {name: value for name, value in about.items() if value}
        text = clip_text(_text_about(hit), MAX_SHOWN_CHARS)
        lines.append(json.dumps({"number": number, **stated, "text": text}, ensure_ascii=False))
    parts = {"question": clip_text(question, MAX_QUESTION_CHARS), "memories": "\n".join(lines)}
    return fill_prompt(template.text, template.version, parts)


def read_order(answer: RerankAnswer, hits: Sequence[Hit], profile: str) -> RankedHits:
    """Return the order in an answer. Numbers that were not shown, or were named before, are ignored."""
    ranked: dict[str, str] = {}
    for placed in answer.order:
        if 1 <= placed.number <= len(hits):
            ranked.setdefault(hits[placed.number - 1].memory_id, placed.reason[:MAX_REASON_CHARS])
    return RankedHits(list(ranked), ranked, profile)


def arrange(result: RetrieveResult, order: HitOrder | None, request: RetrieveRequest) -> RetrieveResult:
    """Return the result of a widened search as the request asked for it, in a model's order if there is one."""
    arranged = result.hits if order is None else order.arranged(result.hits)
    # An order may change the scores.
    hits = [hit for hit in arranged if hit.score >= request.min_score][: request.top_k]
    if order is None:
        return result.model_copy(update={"hits": hits})
    reasons = {"reasons": order.reasons_of(hits)} if request.explain else {}
    reranked = {"reranked_by": order.profile, **reasons}
    return result.model_copy(update={"hits": hits, "diagnostics": {**result.diagnostics, **reranked}})


def _text_about(hit: Hit) -> str:
    """Return the text of a hit; for a long one as many of its best passages as fit, in their order."""
    if not hit.passages:
        return hit.text
    chosen: list[Passage] = []
    room = MAX_SHOWN_CHARS
    for passage in hit.passages:
        chars = passage.end - passage.start
        if not chosen or chars <= room:
            chosen.append(passage)
            room -= chars
    return "\n[…]\n".join(
        hit.text[passage.start : passage.end] for passage in sorted(chosen, key=lambda passage: passage.start)
    )


MAX_READ_HITS = 30
"""Number of hits read: a passage takes about 10 ms of a core."""

MAX_READ_CHARS = 480
"""Characters read of a text without passages: as long as an uncut text."""

READ_WEIGHT, READ_ZERO = 0.15, -8.6
"""The log-odds of a hit change by `READ_WEIGHT` x (the cross-encoder's - `READ_ZERO`).

The weight has the least listwise loss on our conversations, with log-odds of the search by weights fitted without them;
the zero leaves the mean score of 30 hits at the share of them that are evidence. Figures: docs/reference.md.
"""

CONTRIBUTION = "its reading with the question"
"""The name of the change among a hit's contributions."""

READER_NAME = "local"
"""The value of a request's `rerank`, and of `reranked_by`."""


def text_to_read(hit: Hit) -> str:
    """Return a speaker with the best passage, or the first characters of a text without passages."""
    start, end = (hit.passages[0].start, hit.passages[0].end) if hit.passages else (0, MAX_READ_CHARS)
    said = hit.text[start:end]
    return f"{hit.speaker}: {said}" if hit.speaker else said


@dataclass(frozen=True, slots=True)
class ReadHits:
    """A cross-encoder's log-odds of hits, by memory id. Implements `agents.rules.answer.reranking.HitOrder`."""

    log_odds: Mapping[str, float]
    profile: str = READER_NAME

    def arranged(self, hits: Sequence[Hit]) -> list[Hit]:
        """Return hits by the sum of both log-odds, ties in their order; unread hits follow in theirs."""
        changes = {
            hit.memory_id: READ_WEIGHT * (self.log_odds[hit.memory_id] - READ_ZERO)
            for hit in hits
            if hit.memory_id in self.log_odds
        }
        read = [hit for hit in hits if hit.memory_id in changes]
        read.sort(key=lambda hit: -(log_odds_of(hit.score) + changes[hit.memory_id]))
        others = [hit for hit in hits if hit.memory_id not in changes]
        rescored: list[Hit] = []
        for hit in read:
            change = changes[hit.memory_id]
            # The logistic function, which overflows if written with `exp`.
            score = round(0.5 + 0.5 * math.tanh((log_odds_of(hit.score) + change) / 2), SCORE_DECIMALS)
            contributions = hit.contributions
            if contributions is not None:
                by_name = {**contributions, CONTRIBUTION: round(change, SCORE_DECIMALS)}
                contributions = dict(sorted(by_name.items(), key=lambda item: -abs(item[1])))
            rescored.append(hit.model_copy(update={"score": score, "contributions": contributions}))
        return [*rescored, *others]

    def reasons_of(self, hits: Sequence[Hit]) -> dict[str, str]:  # noqa: ARG002 - as a language model's order
        """Return an empty mapping: it gives only numbers."""
        return {}
