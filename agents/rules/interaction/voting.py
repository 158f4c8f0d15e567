"""One answer out of three votes: the trained classifier, the intent table and a language model. Pure.

Votes are probabilities over the modes. They are multiplied, each to the power of its weight (a logarithmic opinion
pool, Genest & Zidek 1986): a vote that says nothing changes nothing, two that agree are surer than either alone.
"""

import numpy as np
from numpy.typing import NDArray

from agents.rules.cues.intents import mode_of_intent
from schemas.interaction import INTERACTION_MODES, Interaction, InteractionMode

MIN_MODE_CONFIDENCE = 0.70
"""Below this confidence a turn is GENERAL (seed 002)."""

INTENT_CONFIDENCE = 0.25
"""What the intent table gives its mode, against 0.19 for each other one: a hint. The classifier has the rules' intent
among its features already; and `fix` stands for a symptom in the table, for a known change in every second sentence.
By cross-validation 0.2 and 0.3 are right as often as 0.25, and 0.4 less often."""

MAX_VOTE_CONFIDENCE = 0.97
"""No single vote is surer than this: one wrong vote must not be beyond the reach of the others."""

Probabilities = NDArray[np.float64]
"""Shape (5,), in the order of `INTERACTION_MODES`, summing to 1."""


def pool_votes(probabilities: Probabilities, intent: str | None, model: Interaction | None) -> Interaction:
    """The mode with the most of the votes and its confidence, whatever the threshold: what `smoothed` starts from.

    `probabilities` are the classifier's; `intent` is a word of the intent table; `model` is a language model's answer,
    which counts nothing with a confidence of 0.
    """
    votes = np.log(np.clip(probabilities, 1e-6, 1.0))
    if intent is not None and (mode := mode_of_intent(intent)) != "GENERAL":
        votes = votes + _vote(mode, INTENT_CONFIDENCE)
    if model is not None and model.confidence > 0:
        votes = votes + _vote(model.mode, model.confidence)
    shares = np.exp(votes - votes.max())
    shares /= shares.sum()
    best = int(shares.argmax())
    return Interaction(mode=INTERACTION_MODES[best], confidence=round(float(shares[best]), 4))


def apply_threshold(interaction: Interaction) -> Interaction:
    """The same, or GENERAL with that confidence where it is below the threshold."""
    if interaction.confidence >= MIN_MODE_CONFIDENCE:
        return interaction
    return Interaction(mode="GENERAL", confidence=interaction.confidence)


def _vote(mode: InteractionMode, confidence: float) -> Probabilities:
    """The logarithms of one vote against an even one: 0 for a confidence of a fifth or less, which says nothing."""
    even = 1 / len(INTERACTION_MODES)
    share = min(max(confidence, even), MAX_VOTE_CONFIDENCE)
    rest = (1 - share) / (len(INTERACTION_MODES) - 1)
    return np.log([share if one == mode else rest for one in INTERACTION_MODES])
