"""Language models whose calls are noted in the run that asks: profile, time, tokens, cost, and why one failed."""

from asyncio import CancelledError
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from agents.ports.language_model import LanguageModel
from agents.ports.run_timer import ModelCall, RunTimer, current_run
from schemas.failures import Unavailable
from schemas.models.language import AnswerT, ModelAnswer, Prompt, Unanswerable


class TimedModels:
    """Implements `agents.ports.language_model.LanguageModel` over other models."""

    def __init__(self, models: LanguageModel) -> None:
        self._models = models

    async def ask(self, step: str, role: str, prompt: Prompt, answer: type[AnswerT]) -> ModelAnswer[AnswerT]:
        """Ask, and note the call; one that its caller gave up has the failure `timeout`."""
        run = current_run()
        if run is None:
            return await self._models.ask(step, role, prompt, answer)
        began = perf_counter()
        try:
            answered = await self._models.ask(step, role, prompt, answer)
        except (Unavailable, Unanswerable, CancelledError) as problem:
            run.add_model(ModelCall(step, began, perf_counter(), failure=_failure(problem)))
            raise
        _note(run, step, began, answered)
        return answered

    def available(self, step: str, role: str) -> bool:
        """True if a call of this step may be made now."""
        return self._models.available(step, role)

    async def until_available(self, step: str, role: str) -> None:
        """Wait until `available`."""
        await self._models.until_available(step, role)

    def status(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the states of the profiles."""
        return self._models.status()

    async def close(self) -> None:
        """Release connections."""
        await self._models.close()


def _note(run: RunTimer, step: str, began: float, answered: ModelAnswer[Any]) -> None:
    tokens = answered.tokens_in, answered.tokens_out
    run.add_model(ModelCall(step, began, perf_counter(), answered.profile, *tokens, answered.cost_usd))


def _failure(problem: BaseException) -> str:
    if isinstance(problem, CancelledError):
        return "timeout"
    return "unanswerable" if isinstance(problem, Unanswerable) else "unavailable"
