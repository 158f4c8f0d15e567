"""Combine the votes of the classifier, the intent table and a language model on the interaction mode. Pure.

Votes are probabilities over the modes, multiplied in a logarithmic opinion pool (Genest & Zidek 1986): an uninformative
vote changes nothing, two that agree are surer than either alone.
"""

import numpy as np
from numpy.typing import NDArray

from agents.rules.cues.intents import mode_of_intent
from schemas.state.interaction import INTERACTION_MODES, Interaction, InteractionMode

MIN_MODE_CONFIDENCE = 0.70
"""Below this confidence a turn is GENERAL."""

INTENT_CONFIDENCE = 0.25
"""The intent table's vote for its mode, against 0.19 for each other one: a hint. The classifier has the intent among
its features already, and `fix` means a symptom in the table but a known change in every second sentence. By
cross-validation 0.2 and 0.3 are as accurate as 0.25, 0.4 is less so."""

MAX_VOTE_CONFIDENCE = 0.97
"""Upper bound of a single vote, so that the others can outvote a wrong one."""

Probabilities = NDArray[np.float64]
"""Shape (5,), in the order of `INTERACTION_MODES`, summing to 1."""


def pool_votes(probabilities: Probabilities, intent: str | None, model: Interaction | None) -> Interaction:
    """Return the leading mode and its confidence before any threshold, as input of `smooth_interaction`.

    `probabilities` are the classifier's; `intent` is a word of the intent table; `model` is a language model's answer,
    ignored at a confidence of 0.
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
    """Replace the mode by GENERAL below the threshold; the confidence stays."""
    if interaction.confidence >= MIN_MODE_CONFIDENCE:
        return interaction
    return Interaction(mode="GENERAL", confidence=interaction.confidence)


def _vote(mode: InteractionMode, confidence: float) -> Probabilities:
    """Return one vote as log probabilities; a confidence of a fifth or less gives an even vote."""
    even = 1 / len(INTERACTION_MODES)
    share = min(max(confidence, even), MAX_VOTE_CONFIDENCE)
    rest = (1 - share) / (len(INTERACTION_MODES) - 1)
    return np.log([share if one == mode else rest for one in INTERACTION_MODES])
