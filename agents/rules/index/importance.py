"""How much a memory matters before anybody asks: what its writer said, or a guess from its form. Pure."""

import math

SATURATION_WORDS = 40
"""Words after which a longer text is not taken to tell more."""

_QUESTION_MARKS = ("?", "\uff1f", "\u061f")


def estimate_importance(given: float | None, text: str, words: int) -> float:
    """The importance in 0..1: `given`, or at most a half, less for short texts and for those that only ask.

    Measured on conversations that we own: short turns and questions are seldom what answers a later question.
    """
    if given is not None:
        return given
    telling = min(1.0, math.log1p(words) / math.log1p(SATURATION_WORDS))
    return 0.25 * telling + (0.0 if is_question(text) else 0.25)


def is_question(text: str) -> bool:
    """Whether a text ends as a question."""
    return text.rstrip("\"'\u201d\u2019) \n").endswith(_QUESTION_MARKS)
