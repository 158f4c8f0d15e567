"""A cross-encoder without a model: its number grows with the share of the question's words that a text has.

Enters: a question and texts. Leaves: log-odds. Guaranteed: what the port promises, by the real one's contract tests.
"""

import asyncio
import re
from collections.abc import Sequence

WORD = re.compile(r"\w+")


class FakeCrossEncoder:
    """Implements `agents.ports.models.CrossEncoder`.

    While `failure` is set every call raises it; while `released` is cleared, calls wait. `read` are the texts that
    arrived. `numbers` replaces the log-odds of texts that contain a key.
    """

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.released = asyncio.Event()
        self.released.set()
        self.read: list[str] = []
        self.numbers: dict[str, float] = {}

    async def scores(self, question: str, texts: Sequence[str], *, boundary: str = "") -> Sequence[float]:
        self.read.extend(texts)
        await self.released.wait()
        if self.failure is not None:
            raise self.failure
        return [self._score(question, text) for text in texts]

    async def close(self) -> None:
        """Nothing to release."""

    def _score(self, question: str, text: str) -> float:
        for part, number in self.numbers.items():
            if part in text:
                return number
        asked, words = (set(WORD.findall(compared.lower())) for compared in (question, text))
        return 10.0 * len(asked & words) / max(len(asked), 1) - 5.0
