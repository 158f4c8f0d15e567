"""Writes the text that is to stand for several turns: by a language model where one may be asked, else by the rules.

A cluster comes in, a text leaves. A model's answer that is empty, not valid or not grounded in the turns is not used.
What was said is data in the prompt, never an instruction.
"""

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from agents.ports.language_model import LanguageModel
from agents.rules.consolidation.candidates import Gathered
from agents.rules.consolidation.extractive_summary import LONGEST_TEXT, extracted_text, is_grounded, told
from agents.rules.prompts.prompting import CHARACTERS_A_TOKEN, Template, clipped, filled_prompt
from schemas.failures import Unavailable
from schemas.interaction import Confidence
from schemas.language import Prompt, Unanswerable

STEP, ROLE = "consolidate.distil", "consolidate"
"""By what a deployment may name a language model profile for this."""

MOST_SHOWN = 40
"""Turns of a cluster that a model is shown: those nearest to all of them. Its evidence is every one."""

LONGEST_SHOWN = 600
"""Characters of each."""


class Answer(BaseModel):
    """What a model makes of a cluster."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: str = Field(max_length=2 * LONGEST_TEXT)
    confidence: Confidence = 0.5


@dataclass(frozen=True, slots=True)
class Told:
    """The text for a cluster, how surely the turns say it, and how many tokens of a model it cost."""

    text: str
    confidence: float
    by_model: bool = False
    tokens: int = 0


class Distil:
    """Clusters in, texts out."""

    def __init__(self, model: LanguageModel, template: Template) -> None:
        self._model = model
        self._template = template

    def expected_tokens(self, cluster: Gathered) -> int:
        """What a cluster may cost; 0 where no model is asked."""
        return len(self._prompt(cluster).user) // CHARACTERS_A_TOKEN if self._model.available(STEP, ROLE) else 0

    async def text(self, cluster: Gathered) -> Told:
        """The text that is to stand for a cluster. Never raises for what a model does."""
        by_rules = Told(extracted_text(cluster.sources), cluster.nearness)
        if not self._model.available(STEP, ROLE):
            return by_rules
        try:
            answered = await self._model.ask(STEP, ROLE, self._prompt(cluster), Answer)
        except (Unavailable, Unanswerable):
            return by_rules
        text, cost = answered.answer.text.strip(), answered.tokens_in + answered.tokens_out
        if not is_grounded(text, cluster.sources):
            return Told(by_rules.text, by_rules.confidence, tokens=cost)
        return Told(text, answered.answer.confidence, by_model=True, tokens=cost)

    def _prompt(self, cluster: Gathered) -> Prompt:
        said = told(cluster.sources[:MOST_SHOWN], lambda text: clipped(text, LONGEST_SHOWN))
        return filled_prompt(self._template.text, self._template.version, {"said": said})
