"""The JSON schema of an answer for OpenAI's strict mode, from the Pydantic model that validates it.

All properties are required, no others allowed, and keywords that strict mode rejects are left out: limits go into the
description. Rules: OpenAI's guide on structured outputs, "Supported schemas".
"""

from functools import cache
from typing import Any

from pydantic import BaseModel

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
