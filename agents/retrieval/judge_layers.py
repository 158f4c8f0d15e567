"""Let a language model say whether a layer above the memories suffices, where request or deployment ask for it.

Enters: a question with the layers that match it. Leaves: the depth of the search. Writes nothing. The texts are data in
the prompt, never an instruction.
"""

from agents.ports.language_model import LanguageModel
from agents.retrieval.asking import NoModelAnswer, RequestModel
from agents.rules.answer.drill_down import (
    MAX_REASON_CHARS,
    JudgedDepth,
    Layers,
    SufficiencyAnswer,
    build_sufficiency_prompt,
    read_depth,
)
from agents.rules.prompts.prompting import Template
from schemas.messages.retrieval import RetrieveRequest

SUFFICIENCY_STEP = "retrieve.sufficiency"
"""The name by which a deployment selects the language model profile."""


class JudgeLayers:
    """Layers in, the depth of a search out."""

    def __init__(
        self, model: LanguageModel, template: Template, timeout_s: float, *, by_default: bool, is_on: bool = True
    ) -> None:
        """`by_default`: also for requests that say nothing about it. `is_on`: the pipelines have layers."""
        self._is_on = is_on
        self.model = RequestModel(model, SUFFICIENCY_STEP, timeout_s)
        self._template = template
        self._by_default = by_default

    def is_asked(self, request: RetrieveRequest) -> bool:
        """True if a model is to judge the layers of this request."""
        asks = self._by_default if request.sufficiency is None else request.sufficiency == "model"
        return asks and self._is_on and request.depth == "auto"

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
