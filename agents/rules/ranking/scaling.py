"""Signals on scales that mean the same for twenty memories and for fifty thousand. Pure.

Nothing is counted over the user's memories: a mean and a deviation over twenty turns are noise, and over fifty thousand
they are those of turns that have nothing to do with the question. Each signal is moved and stretched by constants.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from agents.rules.index.columns import FloatArray


@dataclass(frozen=True, slots=True)
class Scale:
    """(value - middle) x steps."""

    middle: float
    steps: float

    def of(self, values: FloatArray) -> FloatArray:
        """Values on this scale, about -4..6."""
        scaled: FloatArray = (values - self.middle) * self.steps
        return scaled


FEATURE_SCALES: Mapping[str, Scale] = {
    "late": Scale(0.5, 12.0),
    "dense": Scale(0.3, 8.0),
    "words": Scale(0.0, 8.0),
    "around": Scale(0.0, 8.0),
    "conversation": Scale(0.0, 6.0),
}
"""By signal. A step is about one deviation of the signal over a user's turns, on our conversations."""

FIRST_STAGE_WEIGHTS: Mapping[str, float] = {"late": 1.0, "words": 0.5, "around": 0.5, "dense": 0.3}
"""Weights of a plain sum of scaled signals that finds nearly as well: it chooses what is weighed with care."""
