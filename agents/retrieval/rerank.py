"""Let a language model order the best hits of a question, where the request or the deployment asks for it.

Enters: a question with its hits. Leaves: their order, with reasons. Writes nothing. The texts are data in the prompt,
never an instruction.
"""

from collections.abc import Sequence

from modestream_client.hits import Hit

from agents.ports.language_model import LanguageModel
from agents.rules.answer.reranking import RankedHits, RerankAnswer, build_rerank_prompt, read_order
from agents.rules.prompts.prompting import Template
from schemas.failures import Unavailable
from schemas.messages.retrieval import RetrieveRequest
from schemas.models.language import Unanswerable

RERANK_STEP, RERANK_ROLE = "retrieve.rerank", "retrieve"
"""Names by which a deployment selects the language model profile."""


class NotReranked(Exception):
    """The hits keep their order; the message says why."""


class Rerank:
    """Hits in, their order out."""

    def __init__(
        self,
        model: LanguageModel,
        template: Template,
        candidates: int,
        timeout_s: float,
        *,
        by_default: bool,
        is_on: bool = True,
    ) -> None:
        """Show the model at most `candidates` hits; `by_default`: also for requests that say nothing about it.

        `is_on`: the pipelines have this step.
        """
        self._is_on = is_on
        self.timeout_s = timeout_s
        """Time limit of `order`, for its caller."""
        self._model = model
        self._template = template
        self._candidates = candidates
        self._by_default = by_default

    def is_asked(self, request: RetrieveRequest) -> bool:
        """True if the best hits of this request are to be ordered."""
        return self._is_on and (self._by_default if request.rerank is None else request.rerank)

    def widened(self, request: RetrieveRequest) -> RetrieveRequest:
        """Return the request with as many hits as the model is shown, or more."""
        return request.model_copy(update={"top_k": max(request.top_k, self._candidates)})

    async def order(self, question: str, hits: Sequence[Hit]) -> RankedHits | None:
        """Return the order of the best hits; None if there is nothing to order. Raises NotReranked."""
        shown = hits[: self._candidates]
        if len(shown) < 2:
            return None
        if not self._model.available(RERANK_STEP, RERANK_ROLE):
            raise NotReranked("no language model is available, see LLM_PROFILES and the models of the health command")
        prompt = build_rerank_prompt(self._template, question, shown)
        try:
            answered = await self._model.ask(RERANK_STEP, RERANK_ROLE, prompt, RerankAnswer)
        except (Unavailable, Unanswerable) as problem:
            raise NotReranked(str(problem)) from problem
        ranked = read_order(answered.answer, shown, answered.profile)
        if not ranked.order:
            raise NotReranked("the language model found none of them helpful")
        return ranked
