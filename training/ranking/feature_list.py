"""The signals of each head, chosen by cross-validation: `docs/ranking_report.md` says what else was tried."""

from agents.rules.ranking.query_features import ModelVariant

_FIELDS = {"words": ("words",), "vectors": ("words", "dense"), "tokens": ("words", "dense", "late")}
"""Fields that are looked up in neighbours and in the conversation, by head."""

_OF_MEMORY = (
    *("around", "conversation", "entity", "said_then", "?dated*date"),
    *("length", "length2", "first", "second", "last", "standing", "lateness"),
    *("question", "courtesy", "asked_before", "asked_after"),
    *("named", "only_named", "named*first_person", "not_named*question", "not_named*courtesy"),
    *("user", "assistant", "tool", "?own*user", "?yours*assistant", "?yours*tool", "?own*first_person"),
)

_ASKED_FOR = {
    "when": ("date", "time", "duration"),
    "how_many": ("number", "money", "duration"),
    "where": ("name",),
    "who": ("name",),
    "why": ("reason",),
    "would": ("liking", "preference"),
    "yes_no": ("liking",),
}
"""What an answer to each kind of question looks like."""


def features_for(head: ModelVariant) -> list[str]:
    """The names of all signals that a head has, before those are left out that tell nothing."""
    fields = _FIELDS[head]
    near = [f"{field}{step}" for field in fields for step in ("-1", "+1")]
    beside = [*near, *(f"{field}{step}" for field in fields[1:] for step in ("-2", "+2"))]
    formed = [f"{field}.{form}" for field in fields for form in ("best", "answers")]
    crossed = [f"{field}*{of}" for field in fields for of in ("question", "longer")]
    weighed = [*fields, "around", "conversation"]
    foreign = [f"?foreign*{field}" for field in (*weighed, *near, "words-2", "words+2")]
    large = [f"?large*{field}" for field in weighed]
    return [*fields, *_OF_MEMORY, *beside, *formed, *crossed, *foreign, *large, *_asked_for()]


def must_help(name: str) -> bool:
    """Whether more of a signal can't speak against a memory: a negative weight would be an accident of the training."""
    fields = (*("words", "dense", "late"), "around", "conversation")
    own = name.split(".", maxsplit=1)[0] in fields or (name[:-2] in fields and name[-2] in "+-")
    return own or name in ("entity", "said_then", "named", "only_named")


def _asked_for() -> list[str]:
    return [f"?{trait}*{mark}" for trait, marks in _ASKED_FOR.items() for mark in marks]
