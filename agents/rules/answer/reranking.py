"""The order that a language model gives to the best hits: what it is shown, and what its answer changes. Pure.

Enters: hits, and an answer that may contain anything. Leaves: the same hits in another order. Guaranteed: no hit is
added or lost; those that the answer leaves out follow in the order that they had.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from modestream_client.hits import Hit, Passage
from pydantic import BaseModel, Field

from agents.rules.prompts.prompting import Template, clip_text, fill_prompt
from schemas.messages.retrieval import RetrieveRequest, RetrieveResult
from schemas.models.language import Prompt

MAX_SHOWN_CHARS = 600
"""Characters of each memory in the prompt: some 150 tokens."""

MAX_QUESTION_CHARS = 2000
"""Characters of the question in the prompt."""

MAX_REASON_CHARS = 200
"""Characters of a reason that are kept."""


class RankedCandidate(BaseModel, frozen=True, extra="ignore"):
    """A memory by its number in the prompt, and why it is there."""

    number: int
    reason: str = ""


class RerankAnswer(BaseModel, frozen=True, extra="ignore"):
    """A model's order of memories, the most helpful first."""

    order: list[RankedCandidate] = Field(max_length=1000)


class HitOrder(Protocol):
    """An order of the best hits."""

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
        """Return hits in this order; unknown ones follow in theirs, and private ones keep their places."""
        place = {memory_id: number for number, memory_id in enumerate(self.order)}
        ranked = iter(sorted(_not_private(hits), key=lambda hit: place.get(hit.memory_id, len(place))))
        return [hit if hit.private else next(ranked) for hit in hits]

    def reasons_of(self, hits: Sequence[Hit]) -> dict[str, str]:
        """Return the reasons of these hits, in their order."""
        return {hit.memory_id: self.reasons[hit.memory_id] for hit in hits if self.reasons.get(hit.memory_id)}


def _not_private(hits: Iterable[Hit]) -> list[Hit]:
    return [hit for hit in hits if not hit.private]


def build_rerank_prompt(template: Template, question: str, hits: Sequence[Hit]) -> Prompt:
    """Build the prompt that asks for the order of these hits, numbered from 1. Raises ValueError as `fill_prompt`."""
    lines = (json.dumps(_shown(number, hit), ensure_ascii=False) for number, hit in enumerate(hits, 1))
    parts = {"question": clip_text(question, MAX_QUESTION_CHARS), "memories": "\n".join(lines)}
    return fill_prompt(template.text, template.version, parts)


def read_order(answer: RerankAnswer, hits: Sequence[Hit], profile: str) -> RankedHits:
    """Return the order in an answer. Numbers that were not shown, or were named before, are ignored."""
    ranked: dict[str, str] = {}
    for one in answer.order:
        if 1 <= one.number <= len(hits):
            ranked.setdefault(hits[one.number - 1].memory_id, one.reason[:MAX_REASON_CHARS])
    return RankedHits(list(ranked), ranked, profile)


def arrange(result: RetrieveResult, order: HitOrder | None, request: RetrieveRequest) -> RetrieveResult:
    """Return the result of a widened search as the request asked for it, in a model's order if there is one."""
    arranged = result.hits if order is None else order.arranged(result.hits)
    # An order may come with other scores.
    hits = [hit for hit in arranged if hit.score >= request.min_score][: request.top_k]
    if order is None:
        return result.model_copy(update={"hits": hits})
    reasons = {"reasons": order.reasons_of(hits)} if request.explain else {}
    reranked = {"reranked_by": order.profile, **reasons}
    return result.model_copy(update={"hits": hits, "diagnostics": {**result.diagnostics, **reranked}})


def _shown(number: int, hit: Hit) -> dict[str, object]:
    about = {"when": hit.occurred_at, "who": hit.speaker or hit.role}
    text = clip_text(_text_about(hit), MAX_SHOWN_CHARS)
    return {"number": number, **{name: value for name, value in about.items() if value}, "text": text}


def _text_about(hit: Hit) -> str:
    """Return the text of a hit; of a long one as many of its best passages as there is room for, in their order."""
    if not hit.passages:
        return hit.text
    chosen: list[Passage] = []
    room = MAX_SHOWN_CHARS
    for passage in hit.passages:
        chars = passage.end - passage.start
        if not chosen or chars <= room:
            chosen.append(passage)
            room -= chars
    return "\n[…]\n".join(hit.text[one.start : one.end] for one in sorted(chosen, key=lambda one: one.start))
