"""Ask a language model about one request that waits: a single call, without which the request is answered as well."""

from dataclasses import dataclass

from agents.ports.language_model import LanguageModel
from schemas.failures import Unavailable
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

    async def ask(self, prompt: Prompt, answer: type[AnswerT]) -> ModelAnswer[AnswerT]:
        """Return the answer. Raises NoModelAnswer."""
        if not self.is_available():
            raise NoModelAnswer(NO_MODEL)
        try:
            return await self.model.ask(self.step, RETRIEVE_ROLE, prompt, answer)
        except (Unavailable, Unanswerable) as problem:
            raise NoModelAnswer(str(problem)) from problem
