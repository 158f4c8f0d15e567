"""Format the report as Markdown; equal results give equal bytes, except for the measured latency."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from agents.rules.interaction.decision import MIN_MODE_CONFIDENCE
from schemas.state.interaction import INTERACTION_MODES
from training.interaction.calibration import expected_error, reliability
from training.interaction.examples import Turn
from training.interaction.validation import FOLDS, apply_threshold, confusion, scores

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


def format_quality(shares: Floats, modes: Labels, turns: Sequence[Turn]) -> str:
    """Return the tables about predictions; `shares` are the calibrated probabilities, shape (turns, 5)."""
    return "\n\n".join(
        [
            _by_class(shares, modes),
            _confusion(shares, modes),
            "Share of right answers by group, before and after the rule of the threshold:",
            _groups(shares, modes, turns),
            _calibration(shares, modes),
        ]
    )


def join_parts(parts: Iterable[str]) -> str:
    """Join the parts."""
    return "\n\n".join(parts) + "\n"


def describe_method(turns: Sequence[Turn], pool: dict[str, float], temperature: float) -> str:
    """Describe the training data, the model, and the trade-off of the threshold."""
    conversations = len({turn.conversation for turn in turns})
    languages = len({turn.language for turn in turns})
    return f"""# The classifier of interaction modes

Written by `python -m training.interaction`. {len(turns)} user turns by hand in {conversations} conversations, \
{languages} languages; logistic regression over the general embedder's vector, hashed words and characters, cue words \
by group, shape, and the intent rules. All figures of the next section are of turns whose conversation the model had \
not seen: {FOLDS} folds, grouped by conversation. Temperature and pool have been chosen on these predictions (three \
numbers).

The threshold of {MIN_MODE_CONFIDENCE:.0%} makes every less confident answer GENERAL, which costs recall in four \
classes and precision in GENERAL. The model's own confidence (temperature {temperature}) is honest, and would lose \
one turn in eight. So answers between {pool["lowest"]:.0%} and {pool["highest"]:.0%} are said with nearly one \
confidence, from {MIN_MODE_CONFIDENCE:.0%} on: as many of these are right as it says. What is given up is order \
within the pool, not honesty."""


def _by_class(shares: Floats, modes: Labels) -> str:
    rows = [
        (name, f"{one.precision:.3f}", f"{one.recall:.3f}", f"{one.f1:.3f}", one.turns)
        for name, one in zip(INTERACTION_MODES, scores(apply_threshold(shares), modes), strict=True)
    ]
    return _table(("mode, after the threshold", "precision", "recall", "F1", "turns"), rows)


def _confusion(shares: Floats, modes: Labels) -> str:
    table = confusion(apply_threshold(shares), modes)
    rows = [(name, *counts.tolist()) for name, counts in zip(INTERACTION_MODES, table, strict=True)]
    return _table(("is, answered as", *INTERACTION_MODES), rows)


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
        ("written to be hard", lambda turn: turn.source in ("hard", "more", "contrasts")),
    ]
    best, after = shares.argmax(axis=1) == modes, apply_threshold(shares) == modes
    rows = []
    for name, belongs in named:
        inside = np.array([belongs(turn) for turn in turns])
        if inside.any():
            rows.append((name, int(inside.sum()), f"{best[inside].mean():.3f}", f"{after[inside].mean():.3f}"))
    return _table(("group", "turns", "most likely mode", "after the threshold"), rows)


def _calibration(shares: Floats, modes: Labels) -> str:
    confidences, right = shares.max(axis=1), shares.argmax(axis=1) == modes
    rows = [
        (f"{low:.1f} to {high:.1f}", count, f"{said:.3f}", f"{share:.3f}")
        for low, high, count, said, share in reliability(confidences, right)
    ]
    table = _table(("confidence", "turns", "said on average", "right"), rows)
    return f"Expected calibration error over ten bins: {expected_error(confidences, right):.3f}.\n\n{table}"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
