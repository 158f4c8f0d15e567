"""The door to language models. The adapter and its fake pass the same contract tests."""

from collections.abc import Mapping
from typing import Any, Protocol

from schemas.language import AnswerT, ModelAnswer, Prompt


class LanguageModel(Protocol):
    """Models behind named profiles. A step (`understand.turn`) or its role (`understand`) decides which one is asked.

    Calls may be made concurrently; each profile bounds how many are under way.
    """

    async def ask(self, step: str, role: str, prompt: Prompt, answer: type[AnswerT]) -> ModelAnswer[AnswerT]:
        """One validated answer, after retries and at most one repair.

        Raises `Unavailable` when the same question may be answered later: the model is down, too slow, limits the rate,
        rests after failures, or has no valid credentials; the message says what to do. Raises `Unanswerable` when it
        answers, but never validly, or refuses this text.
        """
        ...

    def available(self, step: str, role: str) -> bool:
        """Whether a question of this step may be asked now. False also where no profile is set."""
        ...

    async def until_available(self, step: str, role: str) -> None:
        """Wait until `available`. Of several that wait after an outage one may ask; the others find it out and wait.

        Never returns where no profile is set.
        """
        ...

    def status(self) -> Mapping[str, Mapping[str, Any]]:
        """Per profile `model`, `state` (closed, open, half_open), `calls`, `failures` and `last_error`, for `health`.

        No secret is part of it.
        """
        ...

    async def close(self) -> None:
        """Release connections; nothing may be called afterwards."""
        ...
