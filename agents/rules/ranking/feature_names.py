"""Names of features: validation, and descriptions for users. Pure."""

from agents.rules.ranking.memory_features import LABEL_BITS, MEMORY_FEATURES, QUESTION_TRAITS

LEXICAL_FIELDS = ("words", "around", "conversation")
"""Fields available without vectors."""

NEIGHBOUR_OFFSETS = ("-2", "-1", "+1", "+2")
"""Suffixes of a field taken from a neighbouring turn."""

FIELD_TRANSFORMS = ("best", "answers")
"""Suffixes of a transformed field."""

INTERCEPT_TEXT = "where every memory begins"
"""Description of the intercept."""

CALIBRATION_TEXT = "memories with a vector that its words stand beside"
"""Description of the calibration offset of a memory without a vector."""

_SPEAKER_FEATURES = ("named", "only_named", "not_named", "user", "assistant", "system", "tool")
_TIME_FEATURES = ("said_then", "lateness", "recency")
_PLACE_FEATURES = ("length", "longer", "length2", "first", "second", "last", "standing")
_NEIGHBOUR_FEATURES = ("asked_before", "asked_after")


def is_feature_name(name: str, *, maxsim: bool, dense: bool) -> bool:
    """Return whether a model with these fields can compute the feature."""
    fields = {*LEXICAL_FIELDS, *(["late"] if maxsim else []), *(["dense"] if dense else [])}
    parts = name.split("*")
    return any(part[:1] != "?" for part in parts) and all(
        part[1:] in QUESTION_TRAITS if part.startswith("?") else _is_primitive(part, fields) for part in parts
    )


def _is_primitive(name: str, fields: set[str]) -> bool:
    if name in LABEL_BITS or name in MEMORY_FEATURES or name == "said_then":
        return True
    field, _, form = name.partition(".")
    return (
        name in fields
        or (field in fields and form in FIELD_TRANSFORMS)
        or (name[:-2] in fields and name[-2:] in NEIGHBOUR_OFFSETS)
    )


def describe_feature(name: str) -> str:
    """Return a description for users; many features share one."""
    parts = [part for part in name.split("*") if not part.startswith("?")]
    for part in parts:
        if text := _describe_field(part):
            return text
    return "what the question asks for" if name.startswith("?") else _describe_memory_feature(parts[0])


def _describe_field(part: str) -> str | None:
    if part == "around" or part[-2:] in NEIGHBOUR_OFFSETS or part.endswith(".answers"):
        return "the turns before and after it"
    if part == "conversation" or part.endswith(".best"):
        return "the rest of its conversation"
    names = {"late": "its meaning, word by word", "dense": "its meaning as a whole"}
    names["words"] = "words of the question that it has"
    return names.get(part.partition(".")[0])


def _describe_memory_feature(part: str) -> str:
    if part in _SPEAKER_FEATURES:
        return "who said it"
    if part in _TIME_FEATURES:
        return "when it was said"
    if part in _PLACE_FEATURES:
        return "its length and its place in the conversation"
    if part in _NEIGHBOUR_FEATURES:
        return "the turns before and after it"
    named = "names of the question that it has"
    return {"entity": named, "identifier": named, "importance": "its importance"}.get(part, "what it looks like")
