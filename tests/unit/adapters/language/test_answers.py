import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from schemas.models.language import Prompt, StructuredOutput
from schemas.state.understanding import Understanding
from streams.adapters.language.structured_output import CompletionRequest, InvalidAnswer, read_answer, strict_schema
from tests.fakes.model_server import smallest

PROMPT = Prompt(system="Describe.", user="The turn [[code]].", version="v1")
REFUSED = {
    "default", "title", "minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "pattern", "format",
    "const", "oneOf", "allOf", "prefixItems",
}  # fmt: skip


class Part(BaseModel):
    name: str = ""


class Limited(BaseModel):
    part: Part = Field(default=Part(), description="Strict mode refuses these words beside a reference.")
    kind: Literal["only"] = "only"
    many: tuple[str, ...] = Field(default=(), max_length=3, description="Some of them.")
    share: float = Field(default=0.5, gt=0, le=1)


class Free(BaseModel):
    anything: dict[str, int]


def objects_in(schema: Any) -> list[dict[str, Any]]:
    parts = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else []
    own = [schema] if isinstance(schema, dict) and "properties" in schema else []
    return own + [found for part in parts for found in objects_in(part)]


def keywords_in(schema: dict[str, Any]) -> set[str]:
    named = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", [])]
    parts = [*named, schema["items"]] if "items" in schema else named
    return set(schema).union(*(keywords_in(part) for part in parts))


@pytest.mark.parametrize("answer", [Understanding, Limited])
def test_a_schema_requires_every_property_and_admits_no_other(answer: type[BaseModel]) -> None:
    for found in objects_in(strict_schema(answer)):
        assert found["required"] == list(found["properties"])
        assert found["additionalProperties"] is False


@pytest.mark.parametrize("answer", [Understanding, Limited])
def test_a_schema_has_no_keyword_that_strict_mode_refuses(answer: type[BaseModel]) -> None:
    assert not keywords_in(strict_schema(answer)) & REFUSED


def test_reference_has_no_other_keywords() -> None:
    assert strict_schema(Limited)["properties"]["part"] == {"$ref": "#/$defs/Part"}


def test_limits_are_in_the_description() -> None:
    properties = strict_schema(Limited)["properties"]
    assert properties["many"]["description"] == "Some of them. At most 3 entries"
    assert properties["share"]["description"] == "Not above 1; above 0"


def test_the_smallest_answer_to_a_schema_is_valid() -> None:
    schema = strict_schema(Understanding)
    answer = json.dumps(smallest(schema, schema, "code"))
    assert read_answer(answer, Understanding) == Understanding(mode="code")


def test_answer_type_with_free_keys_is_refused() -> None:
    with pytest.raises(ValueError, match="free keys"):
        strict_schema(Free)


@pytest.mark.parametrize(
    "text",
    [
        '{"mode": "code"}',
        '```json\n{"mode": "code"}\n```',
        'Here it is: {"mode": "code"} I hope that it helps {you}.',
        '<think>{"mode": "journal"}, or rather code</think>\n{"mode": "code"}',
        'As {a: b} and {"example": 1} show: {"mode": "code"}',
        '{"mode": "code", "unknown": [1, 2]}',
        '{"mode": "code", "items": null, "interaction_confidence": null, "intention": {"goals": null}}',
    ],
)
def test_answer_is_found_in_surrounding_text(text: str) -> None:
    assert read_answer(text, Understanding).mode == "code"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no complete JSON object"),
        ("I can't do that.", "no complete JSON object"),
        ('{"mode": "co', "no complete JSON object"),
        ('{"mode": "code", "items": [{"kind": "fact", "text": "a", "quote": "a"}', "no complete JSON object"),
        ('{"topic": "a", "intention": {"goals": ["b"], "topic": "c"}', "no complete JSON object"),
        ("[" * 100_000, "no complete JSON object"),
        ('{"a":' * 100_000, "no complete JSON object"),
        ("{}", "none of the fields"),
        ('{"answer": {"mode": "code"}}', "none of the fields"),
        ('{"mode": 7}', "mode: "),
        ('{"mode": "code", "interaction_confidence": 95}', "interaction_confidence: "),
        ('{"mode": "code", "interaction_confidence": NaN}', "interaction_confidence: "),
        ('{"interaction_mode": "WORK"}', "interaction_mode: "),
        ('{"items": [{"kind": "rumour", "text": "a", "quote": "a"}]}', "items.0.kind: "),
        ('{"topic": "\\ud800"}', "topic: "),
        ('{"topic": ' + "1" * 10_000 + "}", "no complete JSON object"),
    ],
)
def test_invalid_answer_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidAnswer) as refused:
        read_answer(text, Understanding)
    assert reason in str(refused.value)


def test_reason_does_not_repeat_the_answer() -> None:
    with pytest.raises(InvalidAnswer) as refused:
        read_answer('{"interaction_mode": "my secret diary"}', Understanding)
    assert "diary" not in str(refused.value)


def arguments(way: StructuredOutput) -> dict[str, Any]:
    return CompletionRequest(PROMPT, Understanding, way).arguments()


def test_json_schema_is_sent_with_the_request() -> None:
    asked = arguments("json_schema")
    assert asked["messages"][0]["content"] == "Describe."
    given = asked["response_format"]["json_schema"]
    assert given["name"] == "understanding"
    assert given["strict"] is True
    assert given["schema"] == strict_schema(Understanding)


@pytest.mark.parametrize("way", ["json_object", "prompt"])
def test_otherwise_the_schema_is_in_the_system_message(way: StructuredOutput) -> None:
    asked = arguments(way)
    assert json.dumps(strict_schema(Understanding), ensure_ascii=False) in asked["messages"][0]["content"]
    assert asked.get("response_format") == ({"type": "json_object"} if way == "json_object" else None)


def test_a_repair_shows_the_answer_and_the_problem_and_ends_with_the_turn() -> None:
    asked = CompletionRequest(PROMPT, Understanding, "prompt").repair('{"mode": "', "it is cut off")
    assert [message["role"] for message in asked["messages"]] == ["system", "user"]
    last = asked["messages"][-1]["content"]
    assert json.dumps('{"mode": "') in last
    assert "it is cut off" in last
    assert last.endswith(PROMPT.user)
