"""The names of signals: which can be computed, and what each is called for people. Pure."""

from agents.rules.ranking.memory_features import LABEL_BITS, MEMORY_FEATURES, QUESTION_TRAITS

LEXICAL_FIELDS = ("words", "around", "conversation")
"""Fields that need no vectors."""

NEIGHBOUR_OFFSETS = ("-2", "-1", "+1", "+2")
"""Neighbours that a field is looked up in."""

FIELD_TRANSFORMS = ("best", "answers")
"""What is made of a field by itself."""

INTERCEPT_TEXT = "where every memory begins"
"""What is neither a signal's nor anybody's: the intercept."""

CALIBRATION_TEXT = "memories with a vector that its words stand beside"
"""What takes a memory without a vector to those that have one."""

_SPEAKERS = ("named", "only_named", "not_named", "user", "assistant", "system", "tool")
_TIMES = ("said_then", "lateness", "recency")
_PLACES = ("length", "longer", "length2", "first", "second", "last", "standing")
_NEIGHBOURS = ("asked_before", "asked_after")


def is_feature_name(name: str, *, late: bool, dense: bool) -> bool:
    """Whether a head that knows these fields can compute the signal of this name."""
    fields = {*LEXICAL_FIELDS, *(["late"] if late else []), *(["dense"] if dense else [])}
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
    """The signal in words that a person understands; many signals are told by the same words."""
    parts = [part for part in name.split("*") if not part.startswith("?")]
    for part in parts:
        if words := _of_field(part):
            return words
    return "what the question asks for" if name.startswith("?") else _of_memory(parts[0])


def _of_field(part: str) -> str | None:
    """What a field, or something made of one, is called."""
    if part == "around" or part[-2:] in NEIGHBOUR_OFFSETS or part.endswith(".answers"):
        return "the turns before and after it"
    if part == "conversation" or part.endswith(".best"):
        return "the rest of its conversation"
    names = {"late": "its meaning, word by word", "dense": "its meaning as a whole"}
    names["words"] = "words of the question that it has"
    return names.get(part.partition(".")[0])


def _of_memory(part: str) -> str:
    if part in _SPEAKERS:
        return "who said it"
    if part in _TIMES:
        return "when it was said"
    if part in _PLACES:
        return "its length and its place in the conversation"
    if part in _NEIGHBOURS:
        return "the turns before and after it"
    named = "names of the question that it has"
    return {"entity": named, "identifier": named, "importance": "its importance"}.get(part, "what it looks like")
