"""Decide a turn's interaction mode from votes and the turns before it. Pure.

Votes are probabilities over the modes, multiplied in a logarithmic opinion pool (Genest & Zidek 1986): an uninformative
vote changes nothing, two that agree are surer than either alone. The last three turns move the confidence a little,
across the threshold only for an answer near it: users do switch from learning to debugging between two turns.
"""

from collections.abc import Sequence
from itertools import pairwise

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


HISTORY_TURNS = 3
"""Previous turns that count."""

HISTORY_WEIGHT = 0.04
"""Added to the confidence by three turns of the same mode, subtracted by three of other modes. In the labelled
conversations users switch at most turns: a higher weight costs more correct answers than it finds."""

FREQUENT_SWITCHES = 3
"""Changes within the last three turns and this one: every turn has another mode."""

SWITCHING_CONFIDENCE = 0.72
"""Minimum confidence under frequent switching: above the lower half of the classifier's pool, in which every third
answer is wrong. A higher threshold (0.85) costs later turns two points of recall and finds nothing."""

HIGH_CONFIDENCE = 0.85
"""Minimum confidence under drift or many errors: nineteen of twenty such answers are right, whatever the mix of a
deployment's turns. 1.0 would make every turn GENERAL then."""


def smooth_interaction(now: Interaction, before: Sequence[Interaction], *, is_unstable: bool = False) -> Interaction:
    """Return the mode to act on; `before` are the previous turns, oldest first, of which the last three count.

    `now` may be a leading mode below the threshold (`voting.pool_votes`), which a steady conversation can lift above
    it. The result is GENERAL below the threshold: `HIGH_CONFIDENCE` if `is_unstable` (the deployment's
    classifications drift or err), `SWITCHING_CONFIDENCE` under frequent switching, else `MIN_MODE_CONFIDENCE`.
    """
    last = before[-HISTORY_TURNS:]
    adjusted = _adjusted(now, last)
    usual = SWITCHING_CONFIDENCE if _is_switching(now, last) else MIN_MODE_CONFIDENCE
    threshold = HIGH_CONFIDENCE if is_unstable else usual
    if now.confidence < threshold and adjusted.confidence < threshold:
        return Interaction(mode="GENERAL", confidence=adjusted.confidence)
    return apply_threshold(adjusted)


def _adjusted(now: Interaction, last: Sequence[Interaction]) -> Interaction:
    """Move the confidence by the agreement with the last turns; one above the threshold stays above."""
    if not last:
        return now
    agreeing = sum(1 if one.mode == now.mode else -1 for one in last) / HISTORY_TURNS
    confidence = now.confidence + HISTORY_WEIGHT * agreeing
    if agreeing < 0:
        confidence = max(min(now.confidence, MIN_MODE_CONFIDENCE), confidence)
    return Interaction(mode=now.mode, confidence=round(min(1.0, confidence), 4))


def _is_switching(now: Interaction, last: Sequence[Interaction]) -> bool:
    """Return True if every turn changed the mode; changes from or to GENERAL don't count."""
    modes = [one.mode for one in (*last, now)]
    switches = sum(one != other and "GENERAL" not in (one, other) for one, other in pairwise(modes))
    return switches >= FREQUENT_SWITCHES
