"""Write the text of a distilled memory: by a language model if one may read its turns, otherwise by extraction.

A model's answer that is empty, invalid or not grounded in the turns is not used. The turns' texts are data in the
prompt, never an instruction.
"""

from dataclasses import dataclass

from modestream_client.vocabulary import Confidence
from pydantic import BaseModel, ConfigDict, Field

from agents.ports.language_model import LanguageModel
from agents.rules.consolidation.distillation import (
    MAX_DISTILLED_CHARS,
    TurnCluster,
    extractive_summary,
    is_grounded,
    render_sources,
)
from agents.rules.prompts.prompting import CHARS_PER_TOKEN, Template, clip_text, fill_prompt
from schemas.failures import Unavailable
from schemas.models.language import Prompt, Unanswerable

SUMMARISE_STEP, SUMMARISE_ROLE = "consolidate.distil", "consolidate"
"""Names by which a deployment selects the language model profile."""

MAX_SHOWN_TURNS = 40
"""Turns in the prompt: those nearest to all of the cluster. The memory's evidence names every turn."""

MAX_SHOWN_CHARS = 600
"""Characters of each turn in the prompt."""


class ClusterSummaryAnswer(BaseModel):
    """A model's summary of a cluster."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: str = Field(max_length=2 * MAX_DISTILLED_CHARS)
    confidence: Confidence = 0.5


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """A cluster's text with its confidence, and the number of model tokens that it cost."""

    text: str
    confidence: float
    by_model: bool = False
    tokens: int = 0


class Summarise:
    """Clusters in, texts out."""

    def __init__(self, model: LanguageModel, template: Template) -> None:
        self._model = model
        self._template = template

    def expected_tokens(self, cluster: TurnCluster) -> int:
        """Return the number of tokens that a cluster may cost; 0 if no model is asked."""
        return len(self._prompt(cluster).user) // CHARS_PER_TOKEN if self._may_ask(cluster) else 0

    async def text(self, cluster: TurnCluster, *, may_ask: bool = True) -> ClusterSummary:
        """Return a cluster's text. A model's failure raises nothing: the extract is used, as without `may_ask`."""
        by_rules = ClusterSummary(extractive_summary(cluster.sources), cluster.mean_cosine)
        if not may_ask or not self._may_ask(cluster):
            return by_rules
        try:
            answered = await self._model.ask(
                SUMMARISE_STEP, SUMMARISE_ROLE, self._prompt(cluster), ClusterSummaryAnswer
            )
        except (Unavailable, Unanswerable):
            return by_rules
        text, cost = answered.answer.text.strip(), answered.tokens_in + answered.tokens_out
        if not is_grounded(text, cluster.sources):
            return ClusterSummary(by_rules.text, by_rules.confidence, tokens=cost)
        return ClusterSummary(text, answered.answer.confidence, by_model=True, tokens=cost)

    def _may_ask(self, cluster: TurnCluster) -> bool:
        return not cluster.is_private and self._model.available(SUMMARISE_STEP, SUMMARISE_ROLE)

    def _prompt(self, cluster: TurnCluster) -> Prompt:
        said = render_sources(cluster.sources[:MAX_SHOWN_TURNS], lambda text: clip_text(text, MAX_SHOWN_CHARS))
        return fill_prompt(self._template.text, self._template.version, {"said": said})
