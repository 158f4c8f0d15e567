"""Format the report as Markdown; equal results give equal bytes, except for the measured latency."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from agents.rules.cues.intents import intent_of
from agents.rules.cues.mode_taxonomy import ModeTaxonomy
from agents.rules.interaction.stability import MIN_MODE_CONFIDENCE
from schemas.state.interaction import INTERACTION_MODES
from streams.bootstrap.adapters import MODE_TAXONOMY
from training.interaction.calibration import expected_error, reliability
from training.interaction.examples import Turn
from training.interaction.validation import (
    FOLDS,
    GENERAL,
    answer_confidences,
    apply_threshold,
    confusion,
    folds_by_conversation,
    is_confident,
    scores,
)

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

LONG_CHARS = 200
"""Characters above which a turn is long; half of the messages to an assistant are longer."""


def format_quality(shares: Floats, modes: Labels, turns: Sequence[Turn]) -> str:
    """Return the tables about predictions; `shares` are the calibrated probabilities, shape (turns, 5)."""
    return "\n\n".join(
        [
            _by_class(shares, modes),
            _confusion(shares, modes),
            "Share of right answers by group, before and after the threshold:",
            _groups(shares, modes, turns),
            _calibration(shares, modes),
        ]
    )


def format_folds(shares: Floats, modes: Labels, turns: Sequence[Turn]) -> str:
    """Return precision, recall and F1 of each mode by fold."""
    rows = []
    for number, (_, test) in enumerate(folds_by_conversation(modes, turns), 1):
        of_fold = scores(apply_threshold(shares[test]), modes[test])
        rows.append((number, *(f"{one.precision:.2f} / {one.recall:.2f} / {one.f1:.2f}" for one in of_fold)))
    table = _table(("fold", *INTERACTION_MODES), rows)
    return f"Precision / recall / F1 by fold:\n\n{table}"


def join_parts(parts: Iterable[str]) -> str:
    """Join the parts."""
    return "\n\n".join(parts) + "\n"


def describe_method(turns: Sequence[Turn], temperature: float) -> str:
    """Describe the training data, the model, its calibration and the threshold."""
    conversations = len({turn.conversation for turn in turns})
    languages = len({turn.language for turn in turns})
    return f"""# The classifier of interaction modes

Written by `python -m training.interaction`. {len(turns)} user turns by hand in {conversations} conversations, \
{languages} languages; logistic regression over the general embedder's vector, hashed words and characters, cue words \
by group, shape, and the intent rules.

A confidence is the probability that the answer is right: the logits are multiplied by {temperature}, the temperature \
with the least log loss on turns whose conversation the model had not seen ({FOLDS} folds, grouped by conversation; a \
conversation counts by the root of its turns). A leading mode below {MIN_MODE_CONFIDENCE:.0%} is answered as GENERAL, \
with the probability of GENERAL. That costs recall in four classes; what it adds to GENERAL is a fallback and not a \
finding, so its precision is given without and with it.

## Cross-validation

All figures of this section are of turns whose conversation the model had not seen."""


def describe_intents(turns: Sequence[Turn]) -> str:
    """Measure the intent table alone, which answers where the classifier is unavailable."""
    taxonomy = ModeTaxonomy.loads(MODE_TAXONOMY.read_text())
    found = [(intent, turn.mode) for turn in turns if (intent := intent_of(turn.text)) is not None]
    right = Counter(intent for intent, mode in found if taxonomy.mode_of(intent) == mode)
    rows = [
        (intent, taxonomy.mode_of(intent), count, right[intent])
        for intent, count in sorted(Counter(intent for intent, _ in found).items())
    ]
    without = [turn.mode for turn in turns if intent_of(turn.text) is None]
    return f"""## The intent table alone

It answers where the general embedder is unavailable. It finds an intent in {len(found)} of the {len(turns)} training \
examples, and {right.total() / max(1, len(found)):.3f} of these are right. Of those without an intent, \
{without.count("GENERAL") / max(1, len(without)):.3f} are GENERAL.

{_table(("intent", "mode", "turns", "right"), rows)}"""


def _by_class(shares: Floats, modes: Labels) -> str:
    confident = is_confident(shares)
    alone = scores(np.where(confident, shares.argmax(axis=1), -1), modes)
    rows = [
        (name, f"{one.precision:.3f}", f"{both.precision:.3f}", f"{both.recall:.3f}", f"{both.f1:.3f}", both.turns)
        for name, one, both in zip(INTERACTION_MODES, alone, scores(apply_threshold(shares), modes), strict=True)
    ]
    table = _table(("mode", "precision without the fallback", "precision", "recall", "F1", "turns"), rows)
    return f"{(~confident).mean():.1%} of the turns are below the threshold.\n\n{table}"


def _confusion(shares: Floats, modes: Labels) -> str:
    confident = is_confident(shares)
    table = confusion(shares[confident].argmax(axis=1), modes[confident])
    below = np.bincount(modes[~confident], minlength=len(INTERACTION_MODES))
    rows = [
        (name, *counts.tolist(), int(fallback))
        for name, counts, fallback in zip(INTERACTION_MODES, table, below, strict=True)
    ]
    return _table(("is, answered as", *INTERACTION_MODES, "below the threshold"), rows)


def _groups(shares: Floats, modes: Labels, turns: Sequence[Turn]) -> str:
    latin = ("it", "pt", "nl", "pl", "sv", "tr", "cs", "id", "vi")
    named: list[tuple[str, Callable[[Turn], bool]]] = [
        ("all", lambda _: True),
        ("English", lambda turn: turn.language == "en"),
        ("German, Spanish, French", lambda turn: turn.language in ("de", "es", "fr")),
        ("other languages in Latin script", lambda turn: turn.language in latin),
        ("other scripts", lambda turn: turn.language in ("ru", "uk", "ar", "hi", "zh", "ja", "ko", "el")),
        ("first turns", lambda turn: not turn.before),
        ("later turns of a conversation", lambda turn: bool(turn.before)),
        ("of more than 200 characters", lambda turn: len(turn.text) > LONG_CHARS),
        ("written to be hard", lambda turn: turn.source in ("hard", "more", "contrasts")),
        ("of conversations between people", lambda turn: turn.source == "conversations"),
    ]
    best, after = shares.argmax(axis=1) == modes, apply_threshold(shares) == modes
    rows = []
    for name, belongs in named:
        inside = np.array([belongs(turn) for turn in turns])
        if inside.any():
            rows.append((name, int(inside.sum()), f"{best[inside].mean():.3f}", f"{after[inside].mean():.3f}"))
    return _table(("group", "turns", "most likely mode", "after the threshold"), rows)


def _calibration(shares: Floats, modes: Labels) -> str:
    leading = _reliability(shares.max(axis=1), shares.argmax(axis=1) == modes)
    answered = _reliability(answer_confidences(shares), apply_threshold(shares) == modes)
    return (
        f"Reliability of the answers, with the fallback to {INTERACTION_MODES[GENERAL]}: {answered}\n\n"
        f"Reliability of the likeliest mode, before the threshold: {leading}"
    )


def _reliability(confidences: Floats, right: NDArray[np.bool_]) -> str:
    rows = [
        (f"{low:.1f} to {high:.1f}", count, f"{mean:.3f}", f"{share:.3f}")
        for low, high, count, mean, share in reliability(confidences, right)
    ]
    table = _table(("confidence", "turns", "mean confidence", "right"), rows)
    return f"expected calibration error {expected_error(confidences, right):.3f}.\n\n{table}"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
