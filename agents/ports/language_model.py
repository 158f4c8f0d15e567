"""Language models. The adapter and its fake pass the same contract tests."""

from collections.abc import Mapping
from typing import Any, Protocol

from schemas.models.language import AnswerT, ModelAnswer, Prompt


class LanguageModel(Protocol):
    """Models behind named profiles; a step (`understand.turn`) or its role (`understand`) selects the profile.

    `profile` names one instead, whatever step and role would select. No other one takes its place: of a profile that
    there is not, `ask` raises `Unavailable`. Calls may be concurrent; each profile limits their number.
    """

    async def ask(
        self, step: str, role: str, prompt: Prompt, answer: type[AnswerT], profile: str | None = None
    ) -> ModelAnswer[AnswerT]:
        """Return a validated answer, after retries and at most one repair.

        Raises `Unavailable` if the same prompt may succeed later: the model is down or too slow, limits the rate, has
        an open circuit breaker, or has no valid credentials; the message says what to do. Raises `Unanswerable` if its
        answers are invalid or it refuses this text.
        """

    def available(self, step: str, role: str, profile: str | None = None) -> bool:
        """True if a call of this step may be made now; False if no profile is set."""

    async def until_available(self, step: str, role: str, profile: str | None = None) -> None:
        """Wait until `available`. After an outage one waiting caller may probe; the others keep waiting.

        Never returns if no profile is set.
        """

    def status(self) -> Mapping[str, Mapping[str, Any]]:
        """Return per profile `model`, `state` (closed, open, half_open), `calls`, `failures` and `last_error`.

        Shown by `health`; contains no secret.
        """

    async def close(self) -> None:
        """Release connections; no call may follow."""
