"""Have a language model word the questions of an evaluation, and drop those that need nothing of their evidence.

Enters: questions by rules. Leaves: the same evidence with another text. Guaranteed: no private memory is sent; a
question that quotes its evidence is dropped, as one by rules is.
"""

from dataclasses import dataclass

from pydantic import BaseModel, Field
from pydantic_core import to_json

from agents.ports.models import LanguageModel
from agents.ports.stores import Memories
from agents.rules.evaluation.questions import Question, quotes
from agents.rules.prompts.prompting import MAX_TURN_CHARS, Template, clip_text, fill_prompt
from schemas.models.language import Unanswerable

WORDING_STEP, WORDING_ROLE = "evaluate.word", "evaluate"
"""The names by which a deployment selects the language model profile."""

MAX_EVIDENCE_CHARS = 2000
"""Characters of an earlier turn in the prompt."""


class WordedQuestion(BaseModel, frozen=True, extra="ignore"):
    """The answer of a language model."""

    is_needed: bool
    question: str = Field(default="", max_length=1000)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WordQuestions:
    """Questions in, worded questions out."""

    model: LanguageModel
    template: Template
    memories: Memories

    def is_asked(self, by_model: bool | None) -> bool:
        """True if a model is to word questions: if a caller wants it, or by default if one has the role itself."""
        return self.model.has_role(WORDING_ROLE) if by_model is None else by_model

    def is_available(self) -> bool:
        return self.model.available(WORDING_STEP, WORDING_ROLE)

    async def word(self, question: Question) -> Question | None:
        """Return the question in the model's words; None if it is none. Raises Unavailable."""
        later = self.memories.get(question.memory_id)
        evidence = [memory for each in question.evidence if (memory := self.memories.get(each)) is not None]
        if later is None or len(evidence) < len(question.evidence):
            return None
        if any(memory.visibility.private for memory in (later, *evidence)):
            return None
        lines = [
            {"said_at": memory.occurred_at.isoformat(), "text": clip_text(memory.text, MAX_EVIDENCE_CHARS)}
            for memory in evidence
        ]
        parts = {
            "earlier": "\n".join(to_json(line).decode() for line in lines),
            "later": clip_text(later.text, MAX_TURN_CHARS),
        }
        prompt = fill_prompt(self.template.text, self.template.version, parts)
        try:
            answer = (await self.model.ask(WORDING_STEP, WORDING_ROLE, prompt, WordedQuestion)).answer
        except Unanswerable:
            return None
        text = answer.question.strip()
        if not answer.is_needed or not text or any(quotes(text, memory.text) for memory in evidence):
            return None
        return question._replace(text=text)
