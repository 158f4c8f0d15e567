"""Let a language model order the best hits of a question, where the request or the deployment asks for it.

Enters: a question with its hits. Leaves: their order, with reasons. Writes nothing. The texts are data in the prompt,
never an instruction. Private hits are not shown to the model, and keep their places.
"""

from collections.abc import Sequence

from modestream_client.hits import Hit

from agents.ports.language_model import LanguageModel
from agents.retrieval.asking import NoModelAnswer, RequestModel
from agents.rules.answer.reranking import RankedHits, RerankAnswer, build_rerank_prompt, read_order
from agents.rules.prompts.prompting import Template
from schemas.messages.retrieval import RetrieveRequest

RERANK_STEP = "retrieve.rerank"
"""The name by which a deployment selects the language model profile."""


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
        self._model = RequestModel(model, RERANK_STEP, timeout_s)
        self._template = template
        self._candidates = candidates
        self._by_default = by_default

    def is_asked(self, request: RetrieveRequest) -> bool:
        """True if the best hits of this request are to be ordered."""
        return self._is_on and (self._by_default if request.rerank is None else request.rerank is True)

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
