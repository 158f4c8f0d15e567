"""A model that reads a question and a text together. The adapter and its fake pass the same contract tests."""

from collections.abc import Sequence
from typing import Protocol


class CrossEncoder(Protocol):
    """Reads pairs of a question and a text, in English; what is beyond 512 tokens of a pair is not read."""

    async def scores(self, question: str, texts: Sequence[str], *, boundary: str = "") -> Sequence[float]:
        """Return the log-odds that each text answers the question, in the order of the texts.

        The first call loads the model and waits for it; cancelling it drops the pairs that are not read yet. Users
        share it fairly by `boundary`. Raises ModelMissing, with the reason, if there is none, `Unavailable` if the same
        call may succeed later, RuntimeError if the model fails on a text.
        """

    async def close(self) -> None:
        """End its process; no call may follow."""
