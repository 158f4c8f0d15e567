"""The features of each model variant, chosen by cross-validation.

`training/ranking/tried.md` has the experiments; `python -m training.ranking` copies it into `docs/ranking_report.md`.
"""

from agents.rules.ranking.query_features import ModelVariant

_FIELDS = {"words": ("words",), "vectors": ("words", "dense"), "tokens": ("words", "dense", "late")}
"""Fields taken also from neighbours and the conversation, by variant."""

_MEMORY_FEATURES = (
    *("around", "conversation", "entity", "said_then", "?dated*date"),
    *("length", "length2", "first", "second", "last", "standing", "lateness"),
    *("question", "courtesy", "asked_before", "asked_after"),
    *("named", "only_named", "named*first_person", "not_named*question", "not_named*courtesy"),
    *("user", "assistant", "tool", "?own*user", "?yours*assistant", "?yours*tool", "?own*first_person"),
)

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
    neighbours = [*near, *(f"{field}{step}" for field in fields[1:] for step in ("-2", "+2"))]
    transformed = [f"{field}.{form}" for field in fields for form in ("best", "answers")]
    crossed = [f"{field}*{of}" for field in fields for of in ("question", "longer")]
    all_fields = [*fields, "around", "conversation"]
    foreign = [f"?foreign*{field}" for field in (*all_fields, *near, "words-2", "words+2")]
    large = [f"?large*{field}" for field in all_fields]
    answers = [f"?{trait}*{label}" for trait, labels in _ANSWER_LABELS.items() for label in labels]
    return [*fields, *_MEMORY_FEATURES, *neighbours, *transformed, *crossed, *foreign, *large, *answers]


def must_help(name: str) -> bool:
    """Return whether a negative weight of the feature would be an artefact of training."""
    fields = (*("words", "dense", "late"), "around", "conversation")
    own = name.split(".", maxsplit=1)[0] in fields or (name[:-2] in fields and name[-2] in "+-")
    return own or name in ("entity", "said_then", "named", "only_named")
