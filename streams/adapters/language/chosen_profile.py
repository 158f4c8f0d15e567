"""Language models of which a step has chosen one profile, whatever its name and role would select."""

from collections.abc import Mapping
from typing import Any

from agents.ports.language_model import LanguageModel
from schemas.models.language import AnswerT, ModelAnswer, Prompt


class ChosenProfile:
    """Implements `agents.ports.language_model.LanguageModel` over another one: every call is of this profile."""

    def __init__(self, models: LanguageModel, profile: str) -> None:
        self._models = models
        self._profile = profile

    async def ask(self, _step: str, role: str, prompt: Prompt, answer: type[AnswerT]) -> ModelAnswer[AnswerT]:
        """Ask the profile: its name is looked for before step and role."""
        return await self._models.ask(self._profile, role, prompt, answer)

    def available(self, _step: str, role: str) -> bool:
        """True if the profile may be asked."""
        return self._models.available(self._profile, role)

    async def until_available(self, _step: str, role: str) -> None:
        """Wait until the profile may be asked."""
        await self._models.until_available(self._profile, role)

    def status(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the status of all profiles."""
        return self._models.status()

    async def close(self) -> None:
        """Leave the profiles open: others use them."""


def model_of(models: LanguageModel, profile: str | None) -> LanguageModel:
    """Return the models, or those of a chosen profile."""
    return models if profile is None else ChosenProfile(models, profile)
