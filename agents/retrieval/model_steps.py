"""Steps of a search that ask a model: which layer suffices, and the order of the best hits. They write nothing.

A request that asks a language model waits for a single call, and is answered as well without it. Texts are data in the
prompt, never an instruction; a language model reads no private text. The cross-encoder runs on this machine, as the
embedders do: it reads private hits as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from modestream_client.hits import Hit

from agents.ports.models import CrossEncoder, LanguageModel
from agents.rules.answer.drill_down import (
    MAX_REASON_CHARS,
    JudgedDepth,
    Layers,
    SufficiencyAnswer,
    build_sufficiency_prompt,
    read_depth,
)
from agents.rules.answer.reranking import (
    MAX_READ_HITS,
    READER_NAME,
    RankedHits,
    ReadHits,
    RerankAnswer,
    build_rerank_prompt,
    read_order,
    text_to_read,
)
from agents.rules.prompts.prompting import Template
from agents.rules.text.non_english import is_non_english
from schemas.failures import ModelMissing, Unavailable
from schemas.messages.retrieval import RetrieveRequest
from schemas.models.language import AnswerT, ModelAnswer, Prompt, Unanswerable

RETRIEVE_ROLE = "retrieve"
"""The role of all steps of a search; a deployment selects their language model profile by it."""

NO_MODEL = "no language model is available, see LLM_PROFILES and the models of the health command"


class NoModelAnswer(Exception):
    """The request is answered without the model; the message says why."""


@dataclass(frozen=True, slots=True)
class RequestModel:
    """The language model of one step; `timeout_s` is for the caller of `ask`."""

    model: LanguageModel
    step: str
    timeout_s: float

    def is_available(self) -> bool:
        """True if the model can be asked now."""
        return self.model.available(self.step, RETRIEVE_ROLE)

    def require(self) -> None:
        """Raise NoModelAnswer if the model can't be asked now."""
        if not self.is_available():
            raise NoModelAnswer(NO_MODEL)

    async def ask(self, prompt: Prompt, answer: type[AnswerT]) -> ModelAnswer[AnswerT]:
        """Return the answer. Raises NoModelAnswer."""
        self.require()
        try:
            return await self.model.ask(self.step, RETRIEVE_ROLE, prompt, answer)
        except (Unavailable, Unanswerable) as problem:
            raise NoModelAnswer(str(problem)) from problem


SUFFICIENCY_STEP = "retrieve.sufficiency"
"""The name by which a deployment selects the language model profile."""


class JudgeLayers:
    """Layers in, the depth of a search out."""

    def __init__(self, model: LanguageModel, template: Template, timeout_s: float, *, by_default: bool) -> None:
        """`by_default`: also for requests that say nothing about it."""
        self.model = RequestModel(model, SUFFICIENCY_STEP, timeout_s)
        self._template = template
        self._by_default = by_default

    def is_asked(self, request: RetrieveRequest) -> bool:
        """True if a model is to judge the layers of this request."""
        asks = self._by_default if request.sufficiency is None else request.sufficiency == "model"
        return asks and request.depth == "auto"

    async def judge(self, layers: Layers) -> JudgedDepth:
        """Return the depth that suffices. Raises NoModelAnswer."""
        if layers.is_private:
            raise NoModelAnswer("the layers have private memories, which no language model reads")
        prompt = build_sufficiency_prompt(self._template, layers)
        answered = await self.model.ask(prompt, SufficiencyAnswer)
        depth = read_depth(answered.answer, layers)
        if depth is None:
            raise NoModelAnswer("the language model named a layer that has nothing to show")
        return JudgedDepth(depth, answered.answer.reason[:MAX_REASON_CHARS], answered.profile, layers)


RERANK_STEP = "retrieve.rerank"
"""The name by which a deployment selects the language model profile."""


class Rerank:
    """Hits in, their order out."""

    def __init__(
        self, model: LanguageModel, template: Template, candidates: int, timeout_s: float, *, by_default: bool
    ) -> None:
        """Show the model at most `candidates` hits; `by_default`: also for requests that say nothing about it."""
        self.timeout_s = timeout_s
        self._model = RequestModel(model, RERANK_STEP, timeout_s)
        self._template = template
        self._candidates = candidates
        self._by_default = by_default

    def is_asked(self, request: RetrieveRequest) -> bool:
        """True if the best hits of this request are to be ordered."""
        return self._by_default if request.rerank is None else request.rerank is True

    def is_available(self) -> bool:
        """True if the model can be asked now."""
        return self._model.is_available()

    def widened(self, request: RetrieveRequest) -> RetrieveRequest:
        """Return the request with as many hits as the model is shown, or more."""
        return request.model_copy(update={"top_k": max(request.top_k, self._candidates)})

    def shown(self, hits: Sequence[Hit]) -> list[Hit]:
        """Return the hits that the model may read."""
        return [hit for hit in hits[: self._candidates] if not hit.private]

    async def order(self, request: RetrieveRequest, hits: Sequence[Hit]) -> RankedHits:
        """Return the order of the best hits, of which at least two are `shown`. Raises NoModelAnswer."""
        shown = self.shown(hits)
        answered = await self._model.ask(build_rerank_prompt(self._template, request.query, shown), RerankAnswer)
        ranked = read_order(answered.answer, shown, answered.profile)
        if not ranked.order:
            raise NoModelAnswer("the language model found none of them helpful")
        return ranked


class LocalRerank:
    """Hits in, their order out."""

    def __init__(self, cross_encoder: CrossEncoder, timeout_s: float) -> None:
        """`timeout_s` is for the caller of `order`."""
        self.timeout_s = timeout_s
        self._cross_encoder = cross_encoder

    def is_asked(self, request: RetrieveRequest) -> bool:
        """True if the best hits of this request are to be ordered."""
        return request.rerank == READER_NAME

    def is_available(self) -> bool:
        """True: only a call shows whether the model can be loaded."""
        return True

    def widened(self, request: RetrieveRequest) -> RetrieveRequest:
        """Return the request with as many hits as are read, or more, whatever their scores: they will change."""
        return request.model_copy(update={"top_k": max(request.top_k, MAX_READ_HITS), "min_score": 0.0})

    def shown(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        """Return the hits that are read."""
        return hits[:MAX_READ_HITS]

    async def order(self, request: RetrieveRequest, hits: Sequence[Hit]) -> ReadHits:
        """Return the order of the best hits. Raises NoModelAnswer."""
        if is_non_english(request.query):
            raise NoModelAnswer("the question is not in English, the only language that the cross-encoder reads")
        read = self.shown(hits)
        texts = [text_to_read(hit) for hit in read]
        try:
            scores = await self._cross_encoder.scores(request.query, texts, boundary=request.scope.boundary)
        except (ModelMissing, Unavailable, RuntimeError) as problem:
            raise NoModelAnswer(str(problem)) from problem
        return ReadHits({hit.memory_id: score for hit, score in zip(read, scores, strict=True)})
