"""Decide a turn's interaction mode from votes and the turns before it. Pure.

Votes are probabilities over the modes, multiplied in a logarithmic opinion pool (Genest & Zidek 1986): an uninformative
vote changes nothing, two that agree are surer than either alone. The last three turns move the confidence a little,
across the threshold only for an answer near it: users do switch from learning to debugging between two turns.

A confidence is the probability that the answered mode is right. So an answer that falls back to GENERAL has the
probability of GENERAL, not that of the mode it replaces.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from modestream_client.vocabulary import Confidence, InteractionMode
from numpy.typing import NDArray

from agents.rules.cues.intents import intent_of
from agents.rules.cues.mode_taxonomy import ModeTaxonomy
from schemas.state.interaction import INTERACTION_MODES, Interaction

MIN_MODE_CONFIDENCE = 0.70
"""Below this confidence a turn is GENERAL."""

INTENT_CONFIDENCE = 0.25
"""The intent table's vote for its mode, against 0.19 for each other one: a hint. The classifier has the intent among
its features already, and `fix` means a symptom in the table but a known change in every second sentence. By
cross-validation 0.2 and 0.3 are as accurate as 0.25, 0.4 is less so."""

MAX_VOTE_CONFIDENCE = 0.97
"""Upper bound of a single vote, so that the others can outvote a wrong one."""

INTENT_PRECISION = 0.91
"""Share of the training examples with an intent whose mode the intent table gives."""

GENERAL_WITHOUT_INTENT = 0.29
"""Share of GENERAL among the training examples without an intent."""

Probabilities = NDArray[np.float64]
"""Shape (5,), in the order of `INTERACTION_MODES`, summing to 1."""


class LeadingInteraction(Interaction, frozen=True):
    """The likeliest mode before any threshold; `general` is the probability of GENERAL."""

    general: Confidence


def given_interaction(mode: InteractionMode | None, intent: str | None, taxonomy: ModeTaxonomy) -> Interaction | None:
    """Return the interaction mode that a caller gives, by name or else by intent; None for neither."""
    if mode is None and intent is None:
        return None
    return Interaction(mode=mode or taxonomy.mode_of(intent), confidence=1.0)


def interaction_by_intent(text: str, taxonomy: ModeTaxonomy) -> Interaction:
    """Classify a text by the intent table alone, where the classifier is unavailable; GENERAL without an intent."""
    intent = intent_of(text)
    confidence = GENERAL_WITHOUT_INTENT if intent is None else INTENT_PRECISION
    return Interaction(mode=taxonomy.mode_of(intent), confidence=confidence)


def pool_votes(
    probabilities: Probabilities,
    by_intent: InteractionMode | None,
    model: Interaction | None,
    taxonomy: str | None = None,
) -> LeadingInteraction:
    """Return the leading mode before any threshold, as input of `apply_threshold` or `smooth_interaction`.

    `probabilities` are the classifier's; `by_intent` is the intent table's vote, ignored if it is GENERAL; `model` is a
    language model's answer, ignored at a confidence of 0; `taxonomy` is the version of the modes' tables.
    """
    votes = np.log(np.clip(probabilities, 1e-6, 1.0))
    if by_intent is not None and by_intent != "GENERAL":
        votes = votes + _vote(by_intent, INTENT_CONFIDENCE)
    if model is not None and model.confidence > 0:
        votes = votes + _vote(model.mode, model.confidence)
    shares = np.exp(votes - votes.max())
    shares /= shares.sum()
    best = int(shares.argmax())
    rounded = [round(float(share), 4) for share in shares]
    return LeadingInteraction(
        mode=INTERACTION_MODES[best],
        confidence=rounded[best],
        general=rounded[INTERACTION_MODES.index("GENERAL")],
        taxonomy=taxonomy,
    )


def apply_threshold(leading: LeadingInteraction) -> Interaction:
    """Return the mode to act on: GENERAL below the threshold."""
    if leading.confidence < MIN_MODE_CONFIDENCE:
        return _fallback(leading)
    return Interaction(mode=leading.mode, confidence=leading.confidence, taxonomy=leading.taxonomy)


def _fallback(leading: LeadingInteraction) -> Interaction:
    return Interaction(mode="GENERAL", confidence=leading.general, taxonomy=leading.taxonomy)


def _vote(mode: InteractionMode, confidence: float) -> Probabilities:
    """Return one vote as log probabilities; a confidence of a fifth or less gives an even vote."""
    even = 1 / len(INTERACTION_MODES)
    share = min(max(confidence, even), MAX_VOTE_CONFIDENCE)
    rest = (1 - share) / (len(INTERACTION_MODES) - 1)
    return np.log([share if other == mode else rest for other in INTERACTION_MODES])


HISTORY_TURNS = 3
"""Previous turns that count."""

HISTORY_WEIGHT = 0.04
"""Added to the confidence by three turns of the same mode, subtracted by three of other modes. In the labelled
conversations users switch at most turns: of 1,631 later turns 2 more are right than without it, and 5 with twice the
weight, which costs precision."""

FREQUENT_SWITCHES = 3
"""Changes within the last three turns and this one: every turn has another mode."""

SWITCHING_CONFIDENCE = 0.72
"""Minimum confidence under frequent switching. From 0.72 to 0.80 it costs one of 1,631 later turns, 0.85 five."""

HIGH_CONFIDENCE = 0.85
"""Minimum confidence under drift or many errors: nineteen of twenty such answers are right, whatever the mix of a
deployment's turns. 1.0 would make every turn GENERAL then."""


def smooth_interaction(
    now: LeadingInteraction, before: Sequence[Interaction], *, is_unstable: bool = False
) -> Interaction:
    """Return the mode to act on; `before` are the previous turns, oldest first, of which the last three count.

    A steady conversation can lift a leading mode above the threshold. The result is GENERAL below the threshold:
    `HIGH_CONFIDENCE` if `is_unstable` (the deployment's classifications drift or err), `SWITCHING_CONFIDENCE` under
    frequent switching, else `MIN_MODE_CONFIDENCE`.
    """
    last, adjusted = before[-HISTORY_TURNS:], now.confidence
    if last:
        agreeing = sum(1 if turn.mode == now.mode else -1 for turn in last) / HISTORY_TURNS
        moved = now.confidence + HISTORY_WEIGHT * agreeing
        if agreeing < 0:
            # A confidence above the threshold stays above it.
            moved = max(min(now.confidence, MIN_MODE_CONFIDENCE), moved)
        adjusted = round(min(1.0, moved), 4)
    modes = [turn.mode for turn in (*last, now)]
    # Switching: every turn changed the mode; changes from or to GENERAL don't count.
    switches = sum(mode != other and "GENERAL" not in (mode, other) for mode, other in pairwise(modes))
    usual = SWITCHING_CONFIDENCE if switches >= FREQUENT_SWITCHES else MIN_MODE_CONFIDENCE
    threshold = HIGH_CONFIDENCE if is_unstable else usual
    if max(now.confidence, adjusted) < threshold:
        return _fallback(now)
    return Interaction(mode=now.mode, confidence=adjusted, taxonomy=now.taxonomy)
