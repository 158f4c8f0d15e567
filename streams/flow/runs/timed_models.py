"""The language models of one step of the pipelines, whose calls are noted in the run that asks.

Noted are the step's name in the pipelines, profile, time, tokens, cost, and why a call failed.
"""

from asyncio import CancelledError
from collections.abc import Awaitable, Mapping, Sequence
from time import perf_counter
from typing import Any, TypeVar

from agents.ports.clock import ModelCall, current_run
from agents.ports.models import LanguageModel
from schemas.failures import Unavailable
from schemas.models.language import AnswerT, Chat, ChatAnswer, Heard, ModelAnswer, OnText, Prompt, Unanswerable

AnsweredT = TypeVar("AnsweredT", ModelAnswer[Any], ChatAnswer)


class TimedModels:
    """Implements `agents.ports.models.LanguageModel` over other models."""

    def __init__(self, models: LanguageModel, step: str, profile: str | None = None) -> None:
        """`step` is its name in the pipelines; `profile` the one that they have chosen for it, None for none."""
        self._models = models
        self._step = step
        self._profile = profile

    async def ask(
        self, step: str, role: str, prompt: Prompt, answer: type[AnswerT], profile: str | None = None
    ) -> ModelAnswer[AnswerT]:
        """Ask, and note the call; one that its caller gave up has the failure `timeout`."""
        chosen = profile or self._profile
        return await self._noted(self._models.ask(step, role, prompt, answer, chosen), chosen)

    async def continue_chat(
        self, step: str, role: str, chat: Chat, profile: str | None = None, on_text: OnText | None = None
    ) -> ChatAnswer:
        chosen = profile or self._profile
        return await self._noted(self._models.continue_chat(step, role, chat, chosen, on_text), chosen)

    async def _noted(self, asking: Awaitable[AnsweredT], chosen: str | None) -> AnsweredT:
        run = current_run()
        if run is None:
            return await asking
        began = perf_counter()
        try:
            answered = await asking
        except (Unavailable, Unanswerable, CancelledError) as problem:
            run.add_model(ModelCall(self._step, began, perf_counter(), chosen, failure=_failure(problem)))
            raise
        tokens = answered.tokens_in, answered.tokens_out
        run.add_model(ModelCall(self._step, began, perf_counter(), answered.profile, *tokens, answered.cost_usd))
        return answered

    async def transcribe(self, step: str, role: str, sound: bytes, name: str) -> Sequence[Heard]:
        """Return what is said in a sound; files are read outside of any run, so no call is noted."""
        return await self._models.transcribe(step, role, sound, name)

    def has_role(self, role: str) -> bool:
        """True if a profile is set for this role itself."""
        return self._models.has_role(role)

    def available(self, step: str, role: str, profile: str | None = None) -> bool:
        """True if a call of this step may be made now."""
        return self._models.available(step, role, profile or self._profile)

    async def until_available(self, step: str, role: str, profile: str | None = None) -> None:
        """Wait until `available`."""
        await self._models.until_available(step, role, profile or self._profile)

    def status(self) -> Mapping[str, Mapping[str, Any]]:
        return self._models.status()

    async def close(self) -> None:
        await self._models.close()


def _failure(problem: BaseException) -> str:
    if isinstance(problem, CancelledError):
        return "timeout"
    return "unanswerable" if isinstance(problem, Unanswerable) else "unavailable"
