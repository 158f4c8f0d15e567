"""Whether modes are worth their cost: figures with their meaning and advice. Pure.

One bucket for all memories would be better with many corrections, questions that mostly cross modes, or a model that
mostly chooses the default.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Level = Literal["good", "warn", "unknown"]

MANY_CORRECTIONS = 5.0
"""Corrections per hundred memories: above, a person corrects more than one turn of a conversation of twenty."""

MANY_CROSSING = 0.5
"""Share of questions across modes above which they are the common case."""

HIGH_AGREEMENT = 0.95
"""Share of agreement above which a model changes fewer than one turn in twenty."""

MIN_COUNT = 20
"""Cases below which a share says little: one more would move it by five points."""

TOO_FEW = f"Fewer than {MIN_COUNT} cases."


class Criterion(NamedTuple):
    """One figure, as texts."""

    title: str
    value: str
    counted: str
    meaning: str
    advice: str
    level: Level


def criteria_of_user(telemetry: Mapping[str, Any], memories: int) -> list[Criterion]:
    """Return the figures of one user."""
    in_use = telemetry.get("modes_in_use", 0)
    return [
        Criterion(
            "Modes in use",
            str(in_use),
            "modes with memories",
            "Modes keep different ways of speaking apart.",
            "One mode is enough for one kind of conversation. The page Modes suggests others."
            if in_use < 2
            else "Each is searched separately, with its own embedder.",
            "good" if in_use > 1 else "unknown",
        ),
        corrections(telemetry.get("corrections", 0), memories),
        *_of_usage(telemetry.get("user") or {}, "since the worker's start"),
    ]


def corrections(moved: int, of: int) -> Criterion:
    """Return corrections per hundred memories."""
    rate = 100 * moved / of if of else None
    is_bad = rate is not None and rate > MANY_CORRECTIONS
    advice = (
        "Too many: describe the contents of each mode, set project defaults, or have clients name the mode."
        if is_bad
        else "Few memories were moved: keep defaults and descriptions."
    )
    return Criterion(
        "Corrections per hundred memories",
        "-" if rate is None else f"{rate:.1f}",
        f"{moved:,} moved by hand or by a client, of {of:,} memories",
        "Only a question across modes finds a memory in the wrong mode.",
        advice if of >= MIN_COUNT else TOO_FEW,
        _level(of, is_bad=is_bad),
    )


def _of_usage(usage: Mapping[str, int], since: str) -> list[Criterion]:
    questions, answers = usage.get("questions", 0), usage.get("model_answers", 0)
    crossing, agreeing = usage.get("cross_mode_questions", 0), usage.get("model_agreements", 0)
    return [
        _share(
            "Questions across modes",
            (crossing, questions, f"questions {since}"),
            "A question across modes merges the ranks of several embedders, and is less exact than within one mode.",
            (
                "They are the common case: merge modes that are asked together.",
                "Most questions stay within one mode: the modes are well separated.",
                questions > 0 and crossing / questions > MANY_CROSSING,
            ),
        ),
        _share(
            "Model and default agree",
            (agreeing, answers, f"answers of a language model {since}"),
            "If the model chooses the default mode anyway, asking it changes nothing."
            if answers
            else "No language model has chosen a mode. Configure one for turns whose client names none.",
            (
                "It changes fewer than one turn in twenty: its calls can be saved.",
                "It moves turns that the default would misplace: keep it, and watch the corrections.",
                answers > 0 and agreeing / answers > HIGH_AGREEMENT,
            ),
        ),
    ]


def _share(title: str, cases: tuple[int, int, str], meaning: str, advice: tuple[str, str, bool]) -> Criterion:
    part, of, what = cases
    if_bad, if_good, is_bad = advice
    value = "-" if not of else f"{100 * part / of:.1f} %"
    said = TOO_FEW if of < MIN_COUNT else if_bad if is_bad else if_good
    return Criterion(title, value, f"{part:,} of {of:,} {what}", meaning, said, _level(of, is_bad=is_bad))


def _level(of: int, *, is_bad: bool) -> Level:
    return "unknown" if of < MIN_COUNT else "warn" if is_bad else "good"
