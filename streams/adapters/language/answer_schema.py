"""The JSON schema of an answer, as OpenAI's strict mode takes it, from the Pydantic model that validates it.

Every property required, none beside them, no keyword that strict mode refuses: limits are told in the description.
The rules: OpenAI's guide on structured outputs, "Supported schemas".
"""

from functools import cache
from typing import Any

from pydantic import BaseModel

SUPPORTED_KEYWORDS = frozenset(
    {"type", "enum", "anyOf", "items", "properties", "required", "description", "$defs", "$ref"}
)
"""Keywords that every provider of structured output knows."""

LIMIT_DESCRIPTIONS = {
    "minLength": "at least {} characters", "maxLength": "at most {} characters",
    "minItems": "at least {} entries", "maxItems": "at most {} entries",
    "minimum": "not below {}", "maximum": "not above {}",
    "exclusiveMinimum": "above {}", "exclusiveMaximum": "below {}", "pattern": "matches {}", "format": "a {}",
}  # fmt: skip
"""Limits that strict mode refuses as keywords, in words."""


@cache
def strict_schema(answer: type[BaseModel]) -> dict[str, Any]:
    """The schema; raises ValueError for a model with free keys, which strict mode has no way to say."""
    made = _strict(answer.model_json_schema())
    assert isinstance(made, dict)
    return made


def _strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    if "const" in schema:
        schema = {**schema, "enum": [schema["const"]]}
    kept = {keyword: _part(keyword, value) for keyword, value in schema.items() if keyword in SUPPORTED_KEYWORDS}
    return kept | _description(schema) | _closed(schema)


def _part(keyword: str, value: Any) -> Any:
    if keyword in {"properties", "$defs"}:
        return {name: _strict(part) for name, part in value.items()}
    return value if keyword in {"enum", "required", "type", "description"} else _strict(value)


def _description(schema: dict[str, Any]) -> dict[str, str]:
    limits = [words.format(schema[keyword]) for keyword, words in LIMIT_DESCRIPTIONS.items() if keyword in schema]
    told = " ".join(part for part in (schema.get("description", ""), "; ".join(limits).capitalize()) if part)
    return {"description": told} if told else {}


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("type") != "object":
        return {}
    if "properties" not in schema:
        raise ValueError("an answer with free keys can't be asked for")
    return {"required": list(schema["properties"]), "additionalProperties": False}
