"""The features of each model variant, chosen by cross-validation.

`training/ranking/tried.md` has the experiments; `python -m training.ranking` copies it into `docs/ranking_report.md`.
"""

from typing import Literal

from agents.rules.ranking.memory_features import ModelVariant

Regime = Literal["people", "replies"]
"""Among short turns, as between people, and among the long replies of an assistant: two sets of weights, which the
trait of that name mixes."""

REGIMES: tuple[Regime, ...] = ("people", "replies")

_FIELDS = {"words": ("words",), "vectors": ("words", "dense"), "tokens": ("words", "dense", "late")}
"""Fields taken also from neighbours and the conversation, by variant."""

_COMMON = (
    *("around", "conversation", "entity", "said_then", "?dated*date", "question", "courtesy"),
    *("user", "assistant", "?own*user", "?yours*assistant", "?own*first_person"),
)

_PEOPLE = (
    *("length", "length2", "first", "second", "last", "standing", "lateness", "asked_before", "asked_after"),
    *("named", "only_named", "named*first_person", "not_named*question", "not_named*courtesy", "tool", "?yours*tool"),
)
"""Length and place in the conversation say little among long replies: fitted to ours they would mislead in others."""

_REPLIES = ("cover", "relative_length", "?advised*assistant", "?remark*assistant")

_ANSWER_LABELS = {
    "when": ("date", "time", "duration"),
    "how_many": ("number", "money", "duration"),
    "where": ("name",),
    "who": ("name",),
    "why": ("reason",),
    "would": ("liking", "preference"),
    "yes_no": ("liking",),
}
"""Labels typical of an answer, by question type."""


def list_features(variant: ModelVariant) -> list[str]:
    """Return the names of all features of a variant, of both regimes, before those without effect are removed."""
    return list(dict.fromkeys(name for regime in REGIMES for name in regime_features(variant, regime)))


def regime_features(variant: ModelVariant, regime: Regime) -> list[str]:
    """Return the names of the features of a variant in one regime."""
    fields = _FIELDS[variant]
    near = [f"{field}{step}" for field in fields for step in ("-1", "+1")]
    best = [f"{field}.best" for field in fields]
    asking = [f"{field}*question" for field in fields]
    whole = [] if variant == "words" else ["whole"]
    ranks = [f"{field}.rank" for field in (*fields[2:], *whole)]
    foreign = [f"?foreign*{field}" for field in (*fields, "around", "conversation", *near, "words-2", "words+2")]
    answering = [f"?{trait}*{label}" for trait, labels in _ANSWER_LABELS.items() for label in labels]
    own = [*fields, *_COMMON, *near, *best, *asking, *foreign, *answering]
    if regime == "replies":
        remarked = [f"?remark*{name}" for name in (*fields, *whole, "cover", "around", *near)]
        partners = [f"{field}.partner" for field in (*fields[2:], *whole)]
        return [*own, *whole, *_REPLIES, *ranks, *partners, *remarked]
    far = [f"{field}{step}" for field in fields[1:] for step in ("-2", "+2")]
    further = [*far, *(f"{field}.answers" for field in fields), *(f"{field}*longer" for field in fields)]
    large = [f"?large*{field}" for field in (*fields, "around", "conversation")]
    remarked = [
        f"?remark*{name}" for name in (*fields, "around", "conversation", "lateness", "length", *near, *best, *ranks)
    ]
    return [*own, *_PEOPLE, *further, *large, *remarked]


def must_help(name: str) -> bool:
    """Return whether a negative weight of the feature would be an artefact of training."""
    fields = (*("words", "dense", "late"), "around", "conversation")
    own = name.split(".", maxsplit=1)[0] in fields or (name[:-2] in fields and name[-2] in "+-")
    return own or name in ("cover", "entity", "said_then", "named", "only_named")
