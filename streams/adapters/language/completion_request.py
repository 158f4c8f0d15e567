"""A prompt as a LiteLLM request, in each of the three ways to get a JSON object, and its one repair request.

Enters: a prompt and the type of its answer. Leaves: LiteLLM's `messages` and `response_format`. The prompt's user text
is in the last user message, also in a repair.
"""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel

from schemas.models.language import Prompt, StructuredOutput

SUPPORTED_KEYWORDS = frozenset(
    {"type", "enum", "anyOf", "items", "properties", "required", "description", "$defs", "$ref"}
)
"""Keywords that every provider of structured output supports."""

LIMIT_DESCRIPTIONS = {
    "minLength": "at least {} characters", "maxLength": "at most {} characters",
    "minItems": "at least {} entries", "maxItems": "at most {} entries",
    "minimum": "not below {}", "maximum": "not above {}",
    "exclusiveMinimum": "above {}", "exclusiveMaximum": "below {}", "pattern": "matches {}", "format": "a {}",
}  # fmt: skip
"""The words for limits that strict mode rejects as keywords."""


@cache
def strict_schema(answer: type[BaseModel]) -> dict[str, Any]:
    """Return the schema. Raises ValueError for a model with free keys, which strict mode can't express."""
    schema = _strict(answer.model_json_schema())
    assert isinstance(schema, dict)
    return schema


def _strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    if "const" in schema:
        schema = {**schema, "enum": [schema["const"]]}
    supported = {keyword: _part(keyword, value) for keyword, value in schema.items() if keyword in SUPPORTED_KEYWORDS}
    return supported | _description(schema) | _closed(schema)


def _part(keyword: str, value: Any) -> Any:
    if keyword in {"properties", "$defs"}:
        return {name: _strict(part) for name, part in value.items()}
    return value if keyword in {"enum", "required", "type", "description"} else _strict(value)


def _description(schema: dict[str, Any]) -> dict[str, str]:
    limits = [words.format(schema[keyword]) for keyword, words in LIMIT_DESCRIPTIONS.items() if keyword in schema]
    description = " ".join(part for part in (schema.get("description", ""), "; ".join(limits).capitalize()) if part)
    return {"description": description} if description else {}


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("type") != "object":
        return {}
    if "properties" not in schema:
        raise ValueError("an answer type with free keys has no strict JSON schema: name its fields")
    return {"required": list(schema["properties"]), "additionalProperties": False}


MAX_REPEATED_CHARS = 4_000
"""Characters of an invalid answer to show to the model in a repair."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A prompt, the type of its answer, and how to request structured output."""

    prompt: Prompt
    answer: type[BaseModel]
    structured_output: StructuredOutput

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the first request."""
        return self._arguments(self.prompt.user)

    def repair(self, invalid: str, problem: str) -> dict[str, Any]:
        """Return the arguments of a request that shows the model its invalid answer and the problem."""
        shown = json.dumps(invalid[:MAX_REPEATED_CHARS], ensure_ascii=False)
        note = (
            "Your previous answer to the text below was not valid. As a JSON string it was:\n"
            f"{shown}\nWhat is wrong: {problem}\n"
            "Answer again: one complete, valid JSON object and nothing else, shorter if it was cut off.\n\n"
        )
        return self._arguments(note + self.prompt.user)

    def _arguments(self, user: str) -> dict[str, Any]:
        messages = [{"role": "system", "content": self._system()}, {"role": "user", "content": user}]
        return {"messages": messages} | self._response_format()

    def _system(self) -> str:
        if self.structured_output == "json_schema":
            return self.prompt.system
        schema = json.dumps(strict_schema(self.answer), ensure_ascii=False)
        instruction = "Answer with one JSON object of this JSON schema and nothing else, no explanation, no code fence:"
        return f"{self.prompt.system}\n\n{instruction}\n{schema}"

    def _response_format(self) -> dict[str, Any]:
        if self.structured_output == "prompt":
            return {}
        if self.structured_output == "json_object":
            return {"response_format": {"type": "json_object"}}
        schema = {"name": self.answer.__name__.lower(), "strict": True, "schema": strict_schema(self.answer)}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}
