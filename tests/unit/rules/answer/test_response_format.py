"""The form of a model's answer: which schemas are taken, and which answers satisfy them."""

import re
from typing import Any

import pytest

from agents.rules.answer.response_format import check_schema, read_answer

DRINK = {"type": "object", "properties": {"mode": {"enum": ["tea", "coffee"]}}, "required": ["mode"]}
RECURSIVE: dict[str, Any] = {"$ref": "#"}
MULTIPLIED: dict[str, Any] = {
    "$ref": "#/$defs/a0",
    "$defs": {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)} | {"a40": {}},
}


@pytest.mark.parametrize("text", ['{"mode": "tea"}', ' {"mode":"tea"}\n', '```json\n{"mode": "tea"}\n```'])
def test_answer_of_the_form_is_its_value(text: str) -> None:
    assert read_answer(text, DRINK) == {"mode": "tea"}


def test_halves_of_characters_are_replaced() -> None:
    assert read_answer(r'["a\ud83d", "\ud83d\ude00"]', {}) == ["a?", "\U0001f600"]


@pytest.mark.parametrize(
    ("text", "schema", "says"),
    [
        ('{"mode": "milk"}', DRINK, "$.mode: 'milk' is not one of"),
        ("tea", DRINK, "Expecting value"),
        ('{"mode": NaN}', DRINK, "NaN is not JSON"),
        ('"abc"', {"type": "string", "pattern": "^[0-9]+$"}, "it does not match"),
        ("1", RECURSIVE, "nested too deeply"),
        ("1", MULTIPLIED, "takes too long"),
        ("[" * 200_000, DRINK, "nested too deeply"),
        ("1e400", {}, "too large"),
        ("1" * 400, {"multipleOf": 0.1}, "too large"),
        ("{}", {"$ref": "#/$defs/missing"}, "can't be applied"),
        ('"a"', {"$ref": "#/unknown", "unknown": {"minLength": "x"}}, "can't be applied"),
    ],
)
def test_any_other_answer_is_refused(text: str, schema: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        read_answer(text, schema)


def test_pattern_takes_linear_time() -> None:
    with pytest.raises(ValueError, match="does not match"):
        read_answer(f'"{"a" * 5000}!"', {"pattern": "^(a+)+$"})


@pytest.mark.parametrize(
    "schema", [{}, DRINK, {"properties": {"patternProperties": {"type": "string"}}}, {"enum": [{"pattern": 7}]}]
)
def test_schema_that_can_be_checked_is_taken(schema: dict[str, Any]) -> None:
    check_schema(schema)


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": 7}, "$.type: 7 is not valid"),
        ({"$ref": "https://example.com/a.json"}, "a part of the same schema"),
        ({"items": {"patternProperties": {}}}, "'patternProperties' is not supported"),
        ({"properties": {"a": {"pattern": "(?=a)"}}}, "is not supported: no look-around"),
        ({"unevaluatedProperties": False}, "'unevaluatedProperties' is not supported"),
        ({"unknown": {"$ref": 7}}, "'$ref' is not a text"),
        ({"unknown": {"pattern": 7}}, "'pattern' is not a text"),
        ({"$ref": "#/$defs/missing"}, "refers to nothing"),
        ({"$ref": "#/default", "default": {"patternProperties": {"(a+)+$": False}}}, "refers to no schema"),
        ({"properties": {f"a{n}": {} for n in range(6000)}}, "at most 5000 values"),
        ({"properties": {f"a{n}": {"pattern": str(n)} for n in range(60)}}, "at most 50 patterns"),
    ],
)
def test_schema_that_can_not_be_checked_is_refused(schema: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        check_schema(schema)
