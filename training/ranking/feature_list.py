"""The features of each model variant, chosen by cross-validation.

`training/ranking/tried.md` has the experiments; `python -m training.ranking` copies it into `docs/ranking_report.md`.
"""

from agents.rules.ranking.query_features import ModelVariant

_FIELDS = {"words": ("words",), "vectors": ("words", "dense"), "tokens": ("words", "dense", "late")}
"""Fields taken also from neighbours and the conversation, by variant."""

_MEMORY_FEATURES = (
    *("cover", "around", "conversation", "entity", "said_then", "?dated*date"),
    *("lateness", "question", "courtesy", "asked_before", "asked_after"),
    *("named", "only_named", "named*first_person", "not_named*question", "not_named*courtesy"),
    *("user", "assistant", "tool", "?own*user", "?yours*assistant", "?yours*tool", "?own*first_person"),
    *("?advised*assistant", "?remark*assistant"),
)

_SHAPE = ("length", "length2", "first", "second", "last", "standing")
"""Length and place mean little among long replies: what is fitted to short turns would decide there by length alone."""

_ADAPTED = ("cover", "around", "conversation", "user", "assistant", "lateness", "question", "courtesy")
"""Features with a second weight among long replies, beside the fields and those of their neighbours."""

_REMARKED = ("cover", "around", "conversation", "lateness", "question")
"""Features with a second weight for remarks, likewise."""

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
    """Return the names of all features of a variant, before those without effect are removed."""
    fields = _FIELDS[variant]
    near = [f"{field}{step}" for field in fields for step in ("-1", "+1")]
    far = [f"{field}{step}" for field in fields[1:] for step in ("-2", "+2")]
    best = [f"{field}.best" for field in fields]
    answers = [f"{field}.answers" for field in fields]
    asking = [f"{field}*question" for field in fields]
    shape = [f"?people*{name}" for name in (*_SHAPE, *(f"{field}*longer" for field in fields))]
    whole = [] if variant == "words" else ["whole"]
    replies = [*fields, *whole, *_ADAPTED, *near, *far, *best, *answers, *asking]
    adapted = [f"?replies*{name}" for name in (*replies, "relative_length", "asked_before", "asked_after")]
    remarked = [f"?remark*{name}" for name in (*fields, *whole, *_REMARKED, *near, *best)]
    all_fields = [*fields, "around", "conversation"]
    foreign = [f"?foreign*{field}" for field in (*all_fields, *near, "words-2", "words+2")]
    large = [f"?large*{field}" for field in all_fields]
    answering = [f"?{trait}*{label}" for trait, labels in _ANSWER_LABELS.items() for label in labels]
    own = [*fields, *whole, *_MEMORY_FEATURES, *near, *far, *best, *answers, *asking]
    return [*own, *shape, *adapted, *remarked, *foreign, *large, *answering]


def must_help(name: str) -> bool:
    """Return whether a negative weight of the feature would be an artefact of training."""
    fields = (*("words", "dense", "late"), "around", "conversation")
    own = name.split(".", maxsplit=1)[0] in fields or (name[:-2] in fields and name[-2] in "+-")
    return own or name in ("entity", "said_then", "named", "only_named")
